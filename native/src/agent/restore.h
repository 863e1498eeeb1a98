/* What is set for a run, and given back: the same file as perfsuite/device/stability/restore_file.py keeps, so that
 * whichever comes next restores what a run that was killed has left. */
#ifndef PERFSUITE_AGENT_RESTORE_H
#define PERFSUITE_AGENT_RESTORE_H

#include <optional>
#include <string>
#include <vector>

#include "../worker/message.h"

namespace perfsuite {

/* One value that is changed for a run. */
struct Change {
    /* Below the root, without a leading '/'. */
    std::string path;
    std::string before;
    /* All that runs have set since: any other value is somebody else's. */
    std::vector<std::string> set_to;
};

class Journal {
  public:
    /* `folder` keeps the file; `root` is "" but for a tree of stand-ins. */
    Journal(std::string folder, std::string root) : folder_(std::move(folder)), root_(std::move(root)) {}

    /* Restores what a run that was killed has left, and says what was done.  Raises a DeviceError where the process that
     * has made the changes still runs; where that `is_nested`, another process of the same run, it is left to that one. */
    std::vector<std::string> restore_leftovers(bool is_nested = false);

    /* Writes down what is about to be changed, changes it, and returns for each why not, or what it reads then. */
    Value changed(const Value::List &wishes);

    /* Gives back some of it before the end, to what each was before that change; says what could not be. */
    std::vector<std::string> given_back(const Value::List &wishes);

    /* Whether each of these files can be written by this user. */
    Value may_write(const Value::List &paths) const;

    /* Gives back what was changed here, and says what could not be. */
    std::vector<std::string> give_back();

  private:
    struct Kept {
        std::string boot_id;
        long long process_id = 0;
        std::optional<long long> process_start;
        std::vector<Change> changes;
    };

    std::string path() const { return folder_ + "/restore.json"; }
    std::optional<Kept> read() const;
    void write(const Kept &kept) const;
    void keep_open(Kept kept) const;
    void remove() const;
    std::vector<std::string> restored(const std::vector<Change> &changes, bool says_all) const;

    std::string folder_, root_;
    std::vector<Change> changes_;
};

/* The text of a kernel's file without the space around it; none where there is none. */
std::optional<std::string> read_line(const std::string &path);

/* Makes a folder, and those above it; whether it is there. */
bool made_folder(const std::string &path);

} // namespace perfsuite

#endif
