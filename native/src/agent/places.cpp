#include "places.h"

#include <cstdlib>
#include <unistd.h>

#include "../worker/text.h"
#include "restore.h"

namespace perfsuite {

namespace {

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

} // namespace

Places Places::own() {
    Places places;
    places.program = own_program();
    places.bundle = folder_of(places.program);
    places.home = folder_of(folder_of(places.bundle));
    std::string cache = variable("XDG_CACHE_HOME"), user = variable("HOME");
    if (cache.empty() && !user.empty()) {
        cache = user + "/.cache";
    }
    std::string chosen = cache.empty() ? "" : cache + "/perfsuite";
    bool is_usable = !chosen.empty() && chosen[0] == '/' && made_folder(chosen) && ::access(chosen.c_str(), W_OK) == 0;
    places.cache_dir = is_usable ? chosen : places.home + "/cache";
    return places;
}

} // namespace perfsuite
