/* perfsuite-worker: the suite's program on a device.  It needs no Python there.
 *
 *     perfsuite-worker run PLAN RECORD [--engine-library=FILE] [--probe-library=FILE]
 *     perfsuite-worker describe [--engine-library=FILE] [FEATURE ...]
 *     perfsuite-worker serve [--root=FOLDER] [--worker=PROGRAM]
 *     perfsuite-worker run-folder FOLDER [RESULTS] [--root=FOLDER] [--worker=PROGRAM]
 *     perfsuite-worker lock state|break [--force] [--folder=FOLDER]
 *     perfsuite-worker devices
 *     perfsuite-worker --version
 */
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "../agent/json.h"
#include "../agent/lock_command.h"
#include "../agent/run_folder.h"
#include "../agent/serve.h"
#include "../launcher/devices.h"
#include "describe.h"
#include "failure.h"
#include "own_output.h"
#include "own_process.h"
#include "run.h"

namespace {

/* What is printed before a one-line reason that a user can act on. */
constexpr const char *FAILURE_MARK = "perfsuite-worker-failed: ";

/* On one line, as the desk reads it. */
std::string one_line(const char *text) {
    std::string line;
    for (const char *at = text; *at; at++) {
        bool is_space = std::strchr(" \t\r\n", *at) != nullptr;
        if (!is_space || (!line.empty() && line.back() != ' ')) {
            line += is_space ? ' ' : *at;
        }
    }
    return line;
}

int failed(const char *text) {
    perfsuite::say_line(FAILURE_MARK + one_line(text));
    return 1;
}

int dispatched(const std::vector<std::string> &arguments) {
    if (arguments.size() == 1 && arguments[0] == "--version") {
        std::printf("perfsuite-worker %s (plans of schema %d)\n", PS_VERSION, PS_PLAN_SCHEMA);
        return 0;
    }
    if (arguments.size() >= 3 && arguments[0] == "run") {
        perfsuite::end_with_parent();
        return perfsuite::run({arguments.begin() + 1, arguments.end()});
    }
    if (!arguments.empty() && arguments[0] == "describe") {
        return perfsuite::describe({arguments.begin() + 1, arguments.end()});
    }
    if (!arguments.empty() && arguments[0] == "serve") {
        return perfsuite::serve({arguments.begin() + 1, arguments.end()});
    }
    if (arguments.size() >= 2 && arguments[0] == "run-folder") {
        return perfsuite::run_folder({arguments.begin() + 1, arguments.end()});
    }
    if (!arguments.empty() && arguments[0] == "lock") {
        return perfsuite::lock_command({arguments.begin() + 1, arguments.end()});
    }
    if (arguments.size() == 1 && arguments[0] == "devices") {
        perfsuite::OpenCl cl;
        std::printf("%s\n", perfsuite::json_text(perfsuite::described_devices(cl)).c_str());
        return 0;
    }
    std::fprintf(stderr, "usage: perfsuite-worker run PLAN RECORD [--engine-library=FILE] [--probe-library=FILE]\n"
                         "       perfsuite-worker describe [--engine-library=FILE] [FEATURE ...]\n"
                         "       perfsuite-worker serve [--root=FOLDER] [--worker=PROGRAM]\n"
                         "       perfsuite-worker run-folder FOLDER [RESULTS] [--root=FOLDER] [--worker=PROGRAM]\n"
                         "       perfsuite-worker lock state|break [--force] [--folder=FOLDER]\n"
                         "       perfsuite-worker devices\n"
                         "       perfsuite-worker --version\n");
    return 2;
}

} // namespace

int main(int argc, char **argv) {
    try {
        return dispatched({argv + 1, argv + argc});
    } catch (const std::exception &error) {
        return failed(error.what());
    }
}
