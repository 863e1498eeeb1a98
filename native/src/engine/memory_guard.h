// A model or a cache that the memory cannot hold is refused before it swaps.

#ifndef PERFSUITE_ENGINE_MEMORY_GUARD_H
#define PERFSUITE_ENGINE_MEMORY_GUARD_H

namespace perfsuite {

// Raises `failure`, with both figures, where the file is larger than what is available.  From then on the process is
// handed out no more memory of its own than that, so that a cache that does not fit is the engine's own error.
void guard_memory(const char *gguf_path);

} // namespace perfsuite

#endif
