/* Files of the device that the desk wants to see, to check or to keep. */
#ifndef PERFSUITE_AGENT_FILES_H
#define PERFSUITE_AGENT_FILES_H

#include <functional>
#include <string>

#include "../worker/message.h"

namespace perfsuite {

/* The contents of all files whose paths below the root match `patterns`, and where those of `links` lead that are
 * links.  What is no regular file is left out; one that cannot be read is nil. */
Value snapshot(const std::string &root, const Value::List &patterns, const Value::List &links);

/* SHA-256 of a file in hexadecimal digits; "" where it cannot be read.  `look` is called now and then. */
std::string file_digest(const std::string &path, const std::function<void()> &look);

/* SHA-256 of each regular file of a folder, by name. */
Value folder_digests(const std::string &folder, const std::function<void()> &look);

/* Whether a name is one of a file below a folder: no path from the root, and none that leads out. */
bool is_within(const std::string &name);

/* Fills a new folder with copies (`files`: by their paths in it), links to files beside them (`links`) and texts
 * (`contents`), whole or not at all; one that is there already stays. */
void make_folder(const std::string &folder, const Value &files, const Value &links, const Value &contents,
                 const std::function<void()> &look);

} // namespace perfsuite

#endif
