/* What a worker says to whoever started it, over a descriptor of its own: engines and drivers print where they like. */
#ifndef PERFSUITE_WORKER_OWN_OUTPUT_H
#define PERFSUITE_WORKER_OWN_OUTPUT_H

#include <string>

namespace perfsuite {

/* Keeps the standard output for `say_line` alone; what anybody else prints there goes to the standard error. */
void keep_own_output();

/* Says a line.  It begins with the end of another one, for somebody may have left one open in the same pipe. */
void say_line(const std::string &text);

} // namespace perfsuite

#endif
