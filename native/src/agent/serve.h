/* The suite's program on a board, at the end of a desk's link. */
#ifndef PERFSUITE_AGENT_SERVE_H
#define PERFSUITE_AGENT_SERVE_H

#include <string>
#include <vector>

namespace perfsuite {

/* Serves the desk at the other end of this process's pipes, until that has had enough or is gone; returns the exit code.
 *
 * It takes requests on its standard input and answers on its standard output, one after the other.  It ends when its
 * input ends, when the desk is silent for too long, and on a signal: the worker in progress is killed, what was set is
 * restored, and the lock is given back.
 *
 * --root=FOLDER is a tree of stand-ins for /sys and /proc, --worker=PROGRAM another program for workers. */
int serve(const std::vector<std::string> &arguments);

} // namespace perfsuite

#endif
