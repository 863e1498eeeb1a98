#include "recorders.h"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "files.h"
#include "json.h"
#include "processes.h"

namespace perfsuite {

namespace {

constexpr double PROGRAM_LIMIT_S = 60.0;

/* Where root installs the recorder: HELPER_FOLDER of perfsuite/measure/ebpf_helper.py. */
constexpr const char *INSTALLED = "/usr/local/libexec/perfsuite/perfsuite-bpf";

std::string bundled(const Places &places) { return places.bundle + "/perfsuite-bpf"; }

bool is_there(const char *path) { return ::access(path, F_OK) == 0; }

/* Whether root alone can write a file, and what is in the folders above it; a sticky folder keeps others off. */
bool is_roots_alone(const std::string &path) {
    for (std::string place = real_path(path);; place = folder_of(place)) {
        struct stat about;
        if (::lstat(place.c_str(), &about) != 0 || about.st_uid != 0 ||
            ((about.st_mode & (S_IWGRP | S_IWOTH)) && !(about.st_mode & S_ISVTX))) {
            return false;
        }
        if (place == "/" || place.find('/') == std::string::npos) {
            return true;
        }
    }
}

Value told_program(Link &link, const std::string &path) {
    struct stat about;
    bool is_file = ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
    Value told;
    told.set("path", path);
    told.set("is_file", is_file);
    told.set("is_roots_alone", is_file && is_roots_alone(path));
    bool is_run = is_file && (::geteuid() != 0 || is_roots_alone(path)); /* root runs nobody else's */
    std::string said = is_run ? printed(link, {path, "--version"}, PROGRAM_LIMIT_S) : "";
    told.set("version", printable(said.substr(0, said.find('\n'))));
    return told;
}

} // namespace

Value recorder_facts(Link &link, const Places &places) {
    Value found;
    found.set("has_kernel_types", is_there("/sys/kernel/btf/vmlinux"));
    found.set("has_uprobes", is_there("/sys/bus/event_source/devices/uprobe/type"));
    found.set("pid_namespace", pid_namespace());
    found.set("user", account_name(::geteuid()));
    found.set("programs", Value::List{told_program(link, INSTALLED), told_program(link, bundled(places))});
    return found;
}

Value start_recorder(ToldWorkers &workers, const LeftFiles &files, const Places &places, const Value &asked) {
    const std::string &program = asked.at("program").text(), &log = asked.at("log").text();
    if (program != INSTALLED && program != bundled(places)) {
        throw Failure("'" + printable(program) + "' is not the eBPF recorder; known are " + INSTALLED + " and " +
                      bundled(places));
    }
    if (!is_within(log) || log.find('/') != std::string::npos) {
        throw Failure("'" + printable(log) + "' is not a name of a file in the folder of a run");
    }
    std::vector<std::string> command = {program};
    for (const Value &each : asked.at("arguments").list()) {
        command.push_back(each.text());
    }
    return workers.started_recorder(command, files.folder() + "/" + log);
}

Value describe_engine(Link &link, const Start &start, const Value &asked) {
    std::vector<std::string> command = {start.program, "describe"};
    for (const char *name : {"options", "features"}) {
        for (const Value &each : asked.at(name).list()) {
            command.push_back(each.text());
        }
    }
    Value found;
    found.set("output", Bytes{printed(link, command, PROGRAM_LIMIT_S)});
    return found;
}

} // namespace perfsuite
