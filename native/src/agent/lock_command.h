/* What a desk asks of a device about its lock. */
#ifndef PERFSUITE_AGENT_LOCK_COMMAND_H
#define PERFSUITE_AGENT_LOCK_COMMAND_H

#include <string>
#include <vector>

namespace perfsuite {

/* Answers "state", "break" or "break --force" with one line of JSON; returns 2
 * where that is an error.  --folder=FOLDER is another place of locks than the machine's own. */
int lock_command(const std::vector<std::string> &arguments);

} // namespace perfsuite

#endif
