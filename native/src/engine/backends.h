// Backends of ggml's in libraries of their own.

#ifndef PERFSUITE_ENGINE_BACKENDS_H
#define PERFSUITE_ENGINE_BACKENDS_H

#include <mutex>
#include <set>
#include <string>

#include "ggml-backend.h"

namespace perfsuite {

// Loads a backend once for the process; returns what is wrong with it, or nullptr.
//
// A backend that is loaded is there for every model that is loaded after it, and stays for the process: loaded again,
// it would register its devices twice.  One that takes no device leaves all layers to the processor without a word.
inline const char *load_backend(const char *path) {
    static std::mutex lock;
    static std::set<std::string> loaded;
    const std::lock_guard<std::mutex> guard(lock);
    if (loaded.count(path)) {
        return nullptr;
    }
    ggml_backend_reg_t backend = ggml_backend_load(path);
    if (!backend) {
        return "ggml cannot load it as a backend";
    }
    if (ggml_backend_reg_dev_count(backend) == 0) {
        return "the backend takes none of the devices here";
    }
    loaded.insert(path);
    return nullptr;
}

} // namespace perfsuite

#endif
