#include "load.h"

#include <csignal>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../worker/failure.h"
#include "../worker/text.h"

namespace perfsuite {

namespace {

/* More than any machine has processors for; a desk that asks for more is mistaken. */
constexpr long long MOST_PROCESSES = 4096;

/* Longer than any process of the agent keeps open descriptors. */
constexpr int MOST_DESCRIPTORS = 1024;

volatile unsigned long spun = 0;

/* Holds nothing of the link open, so that the desk sees the end of an agent that was killed. */
[[noreturn]] void spin(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int each : {SIGINT, SIGTERM, SIGHUP}) {
        ::signal(each, SIG_DFL);
    }
    for (int each = 0; each < MOST_DESCRIPTORS; each++) {
        ::close(each);
    }
    if (::getppid() != parent) { /* it died before its death was asked for */
        ::_exit(0);
    }
    for (;;) {
        spun = spun + 1;
    }
}

} // namespace

void BusyLoops::set(long long n_processes) {
    end();
    if (n_processes < 0 || n_processes > MOST_PROCESSES) {
        throw Failure("a load of " + std::to_string(n_processes) + " processes was asked for, expected 0 to " +
                      std::to_string(MOST_PROCESSES));
    }
    pid_t parent = ::getpid();
    for (long long each = 0; each < n_processes; each++) {
        pid_t pid = ::fork();
        if (pid == 0) {
            spin(parent);
        }
        if (pid < 0) {
            std::string why = system_text();
            end();
            throw Failure("only " + std::to_string(each) + " processes could be started for a load (" + why + ")");
        }
        processes_.push_back(pid);
    }
}

void BusyLoops::end() {
    for (pid_t each : processes_) {
        ::kill(each, SIGKILL);
    }
    for (pid_t each : processes_) {
        ::waitpid(each, nullptr, 0);
    }
    processes_.clear();
}

} // namespace perfsuite
