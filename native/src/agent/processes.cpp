#include "processes.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../worker/text.h"

namespace perfsuite {

namespace {

/* Longest to wait for killed processes, and how often is looked for what they have started, which may start more. */
constexpr double REAP_LIMIT_S = 10.0, LOOK_S = 0.02;

/* The dot is for user-mode qemu, which makes up what lies in a program's own folder, its start a tick too late: other
 * processes would take it for another one (linux-user/syscall.c, is_proc_myself, version 7.2). */
std::string proc(pid_t pid, const char *name) { return "/proc/./" + std::to_string(pid) + "/" + name; }

} // namespace

std::optional<ProcessStat> process_stat(pid_t pid) {
    std::optional<std::string> content = read_file(proc(pid, "stat"));
    size_t open = content ? content->find('(') : std::string::npos;
    size_t close = content ? content->rfind(')') : std::string::npos; /* the name may hold anything */
    if (open == std::string::npos || close == std::string::npos || close < open) {
        return std::nullopt;
    }
    std::vector<std::string_view> words = words_of(std::string_view(*content).substr(close + 1));
    if (words.size() < 20) {
        return std::nullopt;
    }
    auto number = [&](size_t at) { return number_in(words[at]).value_or(0); };
    ProcessStat found;
    found.pid = pid;
    found.name = content->substr(open + 1, close - open - 1);
    found.is_ended = words[0] == "Z" || words[0] == "X";
    found.parent = static_cast<pid_t>(number(1));
    found.used_ticks = number(11) + number(12);
    found.start_ticks = number(19);
    return found;
}

std::vector<ProcessStat> all_processes() {
    std::vector<ProcessStat> found;
    DIR *folder = ::opendir("/proc");
    while (folder) {
        dirent *entry = ::readdir(folder);
        if (!entry) {
            break;
        }
        std::optional<long long> pid = number_in(entry->d_name);
        std::optional<ProcessStat> stat = pid ? process_stat(static_cast<pid_t>(*pid)) : std::nullopt;
        if (stat) {
            found.push_back(std::move(*stat));
        }
    }
    if (folder) {
        ::closedir(folder);
    }
    return found;
}

std::string pid_namespace() {
    char found[64];
    ssize_t n_bytes = ::readlink("/proc/self/ns/pid", found, sizeof found);
    return n_bytes > 0 ? std::string(found, static_cast<size_t>(n_bytes)) : "";
}

std::string boot_id() {
    std::string content = read_file("/proc/sys/kernel/random/boot_id").value_or("");
    std::vector<std::string_view> words = words_of(content);
    return words.empty() ? "" : std::string(words[0]);
}

std::string account_name(uid_t uid) {
    std::string accounts = read_file("/etc/passwd").value_or("");
    for (std::string_view line : lines_of(accounts)) {
        size_t first = line.find(':');
        size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        size_t third = second == std::string_view::npos ? second : line.find(':', second + 1);
        if (third != std::string_view::npos &&
            number_in(line.substr(second + 1, third - second - 1)) == static_cast<long long>(uid)) {
            return std::string(line.substr(0, first));
        }
    }
    return std::to_string(uid);
}

void sleep_s(double seconds) {
    if (seconds > 0) {
        timespec time = {static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
        ::nanosleep(&time, nullptr);
    }
}

long long monotonic_ns() {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

double monotonic_s() { return static_cast<double>(monotonic_ns()) / 1e9; }

void kill_children() {
    for (double until = monotonic_s() + REAP_LIMIT_S; monotonic_s() < until; sleep_s(LOOK_S)) {
        for (const ProcessStat &each : all_processes()) {
            if (each.parent == ::getpid() && !each.is_ended) {
                ::kill(each.pid, SIGKILL);
            }
        }
        pid_t reaped = 0;
        while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
        }
        if (reaped < 0 && errno == ECHILD) {
            return;
        }
    }
}

} // namespace perfsuite
