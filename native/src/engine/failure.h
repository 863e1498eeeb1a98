// What the engine's C++ sources share: a failure that becomes one line, and ggml's types by name.

#ifndef PERFSUITE_ENGINE_FAILURE_H
#define PERFSUITE_ENGINE_FAILURE_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "ggml.h"

namespace perfsuite {

struct failure {
    std::string text;
};

// Works for a caller in C: 0, or -1 after writing why not to `error`, if it is there.
template <typename Work> int32_t guarded(char *error, size_t error_bytes, Work &&work) {
    std::string problem;
    try {
        work();
        return 0;
    } catch (const failure &caught) {
        problem = caught.text;
    } catch (const std::exception &caught) {
        problem = caught.what();
    }
    if (error && error_bytes) {
        std::snprintf(error, error_bytes, "%s", problem.c_str());
    }
    return -1;
}

// GGML_TYPE_COUNT where no type is called so.
inline ggml_type type_called(const char *name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const char *known = ggml_type_name(static_cast<ggml_type>(i));
        if (known && std::strcmp(known, name) == 0) {
            return static_cast<ggml_type>(i);
        }
    }
    return GGML_TYPE_COUNT;
}

} // namespace perfsuite

#endif
