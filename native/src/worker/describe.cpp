#include "describe.h"

#include <cstdio>
#include <dlfcn.h>

#include "failure.h"
#include "library.h"
#include "own_process.h"
#include "perfsuite/tensor_layout.h"
#include "text.h"

namespace perfsuite {

namespace {

constexpr const char *OPTION = "--engine-library=";

/* The file that one of ggml's functions comes from. */
std::string ggml_library() {
    void *function = ::dlsym(RTLD_DEFAULT, "ggml_init");
    Dl_info about;
    if (!function || !::dladdr(function, &about) || !about.dli_fname) {
        throw Failure("the engine's library brings no ggml; make the bundle anew");
    }
    return about.dli_fname;
}

bool has_feature(const std::string &name) {
    void *function = ::dlsym(RTLD_DEFAULT, ("ggml_cpu_has_" + name).c_str());
    return function && reinterpret_cast<int (*)()>(function)() != 0;
}

} // namespace

int describe(const std::vector<std::string> &arguments) {
    std::string path = folder_of(own_program()) + "/lib/libperfsuite_engine.so", features;
    for (const std::string &each : arguments) {
        if (each.rfind(OPTION, 0) == 0) {
            path = each.substr(std::string(OPTION).size());
        }
    }
    Library engine(path, Library::Loading::GLOBAL);
    for (const std::string &each : arguments) {
        if (each.rfind("--", 0) != 0 && has_feature(each)) {
            features += (features.empty() ? "\"" : ", \"") + each + "\"";
        }
    }
    std::printf("{\"build_id\": \"%s\", \"features\": [%s], \"layout\": ", library_build_id(ggml_library()).c_str(),
                features.c_str());
    if (!PS_FUNCTION(engine, ps_write_tensor_layout)(stdout)) {
        throw Failure("a tensor of the library does not look as its headers say; make the bundle anew");
    }
    std::printf("}\n");
    return 0;
}

} // namespace perfsuite
