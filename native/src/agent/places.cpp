#include "places.h"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/failure.h"
#include "../worker/text.h"
#include "restore.h"

namespace perfsuite {

namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

/* Refuses a folder, or a link to one, that accounts other than this one and root own or can write to: `refuse_foreign`
 * of perfsuite/records/own_files.py. */
void refuse_foreign(const std::string &path) {
    struct stat about;
    for (auto look : {::lstat, ::stat}) {
        if (look(path.c_str(), &about) != 0) {
            return;
        }
        if (about.st_uid != ::geteuid() && about.st_uid != 0) {
            throw Failure(path + ": belongs to the account " + std::to_string(about.st_uid) + ", expected your own (" +
                          std::to_string(::geteuid()) +
                          "); let XDG_CACHE_HOME name a folder of yours, or remove it if nobody needs it");
        }
        bool is_shared = (about.st_mode & S_IWGRP) && about.st_gid != ::getegid();
        if (!S_ISLNK(about.st_mode) && ((about.st_mode & S_IWOTH) || is_shared)) {
            throw Failure(path + ": others can write there, and you would run what they put there; empty it, and run: "
                                 "chmod go-w on it");
        }
    }
}

} // namespace

bool is_own_folder(const std::string &path) {
    struct stat about;
    try {
        refuse_foreign(path);
    } catch (const Failure &) {
        return false;
    }
    return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

Places Places::own(const std::string &own_cache) {
    Places places;
    places.program = own_program();
    places.bundle = folder_of(places.program);
    places.home = folder_of(folder_of(places.bundle));
    std::string cache = variable("XDG_CACHE_HOME"), user = variable("HOME");
    if (cache.empty() && !user.empty()) {
        cache = user + "/.cache";
    }
    std::string chosen = !own_cache.empty() || cache.empty() ? own_cache : cache + "/perfsuite";
    bool is_usable = !chosen.empty() && chosen[0] == '/' && made_folder(chosen) && ::access(chosen.c_str(), W_OK) == 0;
    if (is_usable) {
        refuse_foreign(chosen);
    }
    places.cache_dir = is_usable ? chosen : places.home + "/cache";
    return places;
}

} // namespace perfsuite
