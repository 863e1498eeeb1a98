// What the engine's C++ sources share: a failure that becomes one line, and ggml's types by name.

#ifndef PERFSUITE_ENGINE_FAILURE_H
#define PERFSUITE_ENGINE_FAILURE_H

#include <cstring>
#include <string>

#include "ggml.h"

namespace perfsuite {

struct failure {
    std::string text;
};

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
