/* Programs of other people that measure the device, where they are installed: a few that are known by name. */
#ifndef PERFSUITE_AGENT_PROGRAMS_H
#define PERFSUITE_AGENT_PROGRAMS_H

#include <string>

#include "../worker/message.h"
#include "link.h"

namespace perfsuite {

/* Where on the PATH a program is: `name`, and `mark`, a text that it holds, or nil.  Nil where it is not there. */
Value found_program(const Value &asked);

/* Runs one: `name`, `arguments`, `environment`, `limit_s`, and `file_option`, before which argument it is given the path
 * of a file to write, or nil.  Returns how it ended (`code`, `signal`, `is_late`), what it printed, and that file. */
Value ran_program(Link &link, const std::string &work_folder, const Value &asked);

} // namespace perfsuite

#endif
