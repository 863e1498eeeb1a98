// Backends of ggml's in libraries of their own.

#ifndef PERFSUITE_ENGINE_BACKENDS_H
#define PERFSUITE_ENGINE_BACKENDS_H

namespace perfsuite {

// Loads a backend once for the process; returns what is wrong with it, or nullptr.
const char *load_backend(const char *path);

} // namespace perfsuite

#endif
