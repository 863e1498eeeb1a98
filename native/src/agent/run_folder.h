/* A folder that was uploaded: the requests of a desk that is not there, and the answers that it will read. */
#ifndef PERFSUITE_AGENT_RUN_FOLDER_H
#define PERFSUITE_AGENT_RUN_FOLDER_H

#include <string>
#include <vector>

namespace perfsuite {

/* Asks a process that serves as it does at the end of a link for everything in `requests/` of the folder of the first
 * argument, in order, and writes each answer, whole or not at all, into the folder of the second (default: `results/`
 * beside them); returns the exit code.
 *
 * What has an answer of this device is not asked for again, so that a run that was ended goes on where it was.  The
 * format of both is that of perfsuite/records/job.py.
 *
 * --root=FOLDER and --worker=PROGRAM are as of `serve`. */
int run_folder(const std::vector<std::string> &arguments);

} // namespace perfsuite

#endif
