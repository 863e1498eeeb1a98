#include "programs.h"

#include <algorithm>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "../worker/text.h"
#include "json.h"
#include "workers.h"

namespace perfsuite {

namespace {

/* All that a desk may have run; as PROGRAMS in perfsuite/measure/independent_rates.py. */
constexpr std::string_view KNOWN[] = {"likwid-bench", "stream", "clpeak"};

/* Longest that one may run, s; clpeak compiles its kernels for every device. */
constexpr double MOST_LIMIT_S = 600.0;

const std::string &known_name(const Value &asked) {
    const std::string &name = asked.at("name").text();
    if (std::find(std::begin(KNOWN), std::end(KNOWN), name) == std::end(KNOWN)) {
        throw Failure("the agent was asked for the program '" + printable(name) + "'; known are likwid-bench, stream, clpeak");
    }
    return name;
}

/* Its path; "" where it is not there. */
std::string path_of(const std::string &name) {
    const char *variable = std::getenv("PATH");
    std::string folders = variable ? variable : "/usr/bin:/bin";
    for (size_t at = 0; at <= folders.size();) {
        size_t end = std::min(folders.find(':', at), folders.size());
        std::string path = folders.substr(at, end - at) + "/" + name;
        struct stat about;
        if (end > at && ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0) {
            return path;
        }
        at = end + 1;
    }
    return "";
}

} // namespace

Value found_program(const Value &asked) {
    std::string path = path_of(known_name(asked));
    const Value *mark = asked.find("mark");
    bool is_it = !path.empty() && (!mark || read_file(path).value_or("").find(mark->bytes()) != std::string::npos);
    return is_it ? Value(printable(path)) : Value();
}

Value ran_program(Link &link, const std::string &work_folder, const Value &asked) {
    std::string path = path_of(known_name(asked));
    if (path.empty()) {
        throw Failure(asked.at("name").text() + ": is not there");
    }
    std::vector<std::string> command = {path};
    for (const Value &each : asked.at("arguments").list()) {
        command.push_back(each.text());
    }
    WorkFolder folder(work_folder);
    std::string file = folder.path + "/file";
    if (const Value *option = asked.find("file_option")) {
        command.insert(command.end(), {option->text(), file});
    }
    Value found = run_program(link, command, asked.at("environment"), std::min(asked.at("limit_s").number(), MOST_LIMIT_S));
    std::optional<std::string> content = read_file(file);
    found.set("file", content ? Value(Bytes{std::move(*content)}) : Value());
    return found;
}

} // namespace perfsuite
