/* What a llama.cpp tells of itself, in a process that does nothing else. */
#ifndef PERFSUITE_WORKER_DESCRIBE_H
#define PERFSUITE_WORKER_DESCRIBE_H

#include <string>
#include <vector>

namespace perfsuite {

/* Prints a line of JSON: the layout of its tensors, the build id of the library that has them, and which of some features
 * of the processor it was built for and finds (`ggml_cpu_has_NAME`).
 *
 * The arguments are --engine-library=FILE, the suite's own library for it (default: in lib/ beside the program), and the
 * names of features.  Returns the exit code; raises a `Failure` for what a user can act on. */
int describe(const std::vector<std::string> &arguments);

} // namespace perfsuite

#endif
