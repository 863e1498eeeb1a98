/* One replicate: a plan in, a record out. */
#ifndef PERFSUITE_WORKER_RUN_H
#define PERFSUITE_WORKER_RUN_H

#include <string>
#include <vector>

namespace perfsuite {

/* Runs the plan of the first argument and writes the record of the second, whole or not at all; returns the exit code.
 *
 * Options name the native libraries, which are else those in lib/ beside the program.
 *
 * Raises a `Failure` for what a user can act on. */
int run(const std::vector<std::string> &arguments);

} // namespace perfsuite

#endif
