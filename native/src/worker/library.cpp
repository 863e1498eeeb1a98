#include "library.h"

#include <dlfcn.h>

#include "failure.h"

namespace perfsuite {

Library::Library(const std::string &path, bool is_global)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL))) {
    if (!handle_) {
        throw Failure(path + ": cannot be loaded (" + dlerror() + ")", "NativeBuildError");
    }
}

void *Library::symbol(const char *name) const {
    void *found = dlsym(handle_, name);
    if (!found) {
        throw Failure(path_ + ": has no " + name + "; it was built by another version of the suite", "NativeBuildError");
    }
    return found;
}

} // namespace perfsuite
