/* The folder of a run, and what the run leaves in it. */
#ifndef PERFSUITE_AGENT_LEFT_FILES_H
#define PERFSUITE_AGENT_LEFT_FILES_H

#include <memory>
#include <string>

#include "workers.h"

namespace perfsuite {

class LeftFiles {
  public:
    /* The folders of runs are made in `parent`. */
    explicit LeftFiles(const std::string &parent) : parent_(parent) {}

    /* Removes the folder of the run before, and makes one where it is wanted: its path, or nil. */
    Value begin(bool is_wanted);

    /* The regular files below the folder, a list of names and bytes in the order of their names; what a link leads to is
     * none of them. */
    Value found() const;

    /* So many bytes of one of them from an offset on, or fewer; none at its end. */
    Value piece(const std::string &name, int64_t offset, int64_t most_bytes) const;

    /* The folder; a Failure where there is none. */
    const std::string &folder() const;

  private:

    const std::string &parent_;
    std::unique_ptr<WorkFolder> folder_;
};

} // namespace perfsuite

#endif
