/* Where the suite's files lie on this device. */
#ifndef PERFSUITE_AGENT_PLACES_H
#define PERFSUITE_AGENT_PLACES_H

#include <string>

namespace perfsuite {

struct Places {
    /* This program, its bundle, and the home that holds bundles. */
    std::string program, bundle, home;
    /* Where the suite in Python has its cache too; below the home where there is no such place. */
    std::string cache_dir;

    /* Where a run keeps what it has to restore. */
    std::string state_folder() const { return cache_dir + "/device"; }

    /* Those of this process, whose cache is `cache` unless that is ""; its folder is made.  Throws `Failure`: others own it
     * or can write to it. */
    static Places own(const std::string &cache = "");
};

/* Whether a folder is there, and only this account and root own it and can write to it. */
bool is_own_folder(const std::string &path);

} // namespace perfsuite

#endif
