/* Processes of the device, as /proc tells them. */
#ifndef PERFSUITE_AGENT_PROCESSES_H
#define PERFSUITE_AGENT_PROCESSES_H

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace perfsuite {

struct ProcessStat {
    pid_t pid;
    std::string name;
    /* Whether it has ended, and only its parent has not asked how. */
    bool is_ended;
    pid_t parent;
    /* When it started, and its time on a processor, in clock ticks. */
    long long start_ticks;
    long long used_ticks;
};

/* What /proc says of a process; none where it does not show it. */
std::optional<ProcessStat> process_stat(pid_t pid);

/* All processes that may be seen. */
std::vector<ProcessStat> all_processes();

/* What names the namespace of process numbers, and this start of the machine; "" where the system does not say. */
std::string pid_namespace();
std::string boot_id();

/* The account's name, or else its number. */
std::string account_name(uid_t uid);

/* Sleeps; a signal shortens it. */
void sleep_s(double seconds);

/* CLOCK_MONOTONIC. */
long long monotonic_ns();
double monotonic_s();

/* Kills all that this process has started, and what that has; this process has to be their reaper. */
void kill_children();

} // namespace perfsuite

#endif
