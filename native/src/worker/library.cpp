#include "library.h"

#include <dlfcn.h>

#include "failure.h"

namespace perfsuite {

namespace {

int flags_of(Library::Loading how) {
    return RTLD_NOW | (how == Library::Loading::GLOBAL ? RTLD_GLOBAL : RTLD_LOCAL) |
           (how == Library::Loading::THERE_ALREADY ? RTLD_NOLOAD : 0);
}

} // namespace

Library::Library(const std::string &path, Loading how) : path_(path), handle_(dlopen(path.c_str(), flags_of(how))) {
    if (!handle_) {
        const char *why = dlerror();
        throw Failure(path + ": cannot be loaded (" + (why ? why : "it is not in this process") + ")",
                      "NativeBuildError");
    }
}

bool Library::is_loaded(const std::string &path) {
    return dlopen(path.c_str(), flags_of(Loading::THERE_ALREADY)) != nullptr; /* stays, as all others do */
}

void *Library::symbol(const char *name) const {
    void *found = dlsym(handle_, name);
    if (!found) {
        throw Failure(path_ + ": has no " + name + "; it was built by another version of the suite", "NativeBuildError");
    }
    return found;
}

} // namespace perfsuite
