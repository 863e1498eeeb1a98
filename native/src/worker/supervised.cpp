#include "supervised.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.h"

namespace perfsuite {

namespace {

/* A child's exit status for what its work raised; none of the engine's or a driver's own. */
constexpr int GAVE_UP = 113;

/* How often a child that has begun no step is looked at, within a limit. */
constexpr double LOOKS_A_LIMIT = 10.0, LONGEST_LOOK_S = 5.0;

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* Memory that this process and its children see. */
class Shared {
  public:
    Shared() {
        void *page = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            throw Failure("no memory is shared with a child (" + system_text() + ")");
        }
        progress = new (page) Progress();
    }
    Shared(const Shared &) = delete;
    Shared &operator=(const Shared &) = delete;
    ~Shared() { ::munmap(progress, sizeof(Progress)); }

    Progress *progress;
};

[[noreturn]] void be_child(pid_t parent, Progress &progress, const std::function<void(Progress &)> &work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int status = ::getppid() == parent ? 0 : GAVE_UP;
    try {
        if (status == 0) {
            work(progress);
        }
    } catch (const std::exception &error) {
        std::strncpy(progress.failure.data(), error.what(), progress.failure.size() - 1);
        status = GAVE_UP;
    }
    std::fflush(stdout);
    ::_exit(status); /* without the last words of drivers, which may hang */
}

/* Waits until the pipe's other end is gone, with the child; false where that has hung. */
bool outlasts(int ended, const Progress &progress, double step_limit_s) {
    int64_t n_steps = progress.n_steps();
    double since_s = now_s();
    while (true) {
        pollfd polled = {ended, POLLIN, 0};
        double look_s = std::min(step_limit_s / LOOKS_A_LIMIT, LONGEST_LOOK_S);
        if (::poll(&polled, 1, std::max(1, static_cast<int>(look_s * 1000))) > 0) {
            return true;
        }
        if (progress.is_resting() || progress.n_steps() != n_steps) {
            n_steps = progress.n_steps();
            since_s = now_s();
        } else if (now_s() - since_s >= step_limit_s) {
            return false;
        }
    }
}

int status_of(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

} // namespace

std::optional<Crash> supervised(double step_limit_s, const std::function<void(Progress &)> &work) {
    Shared shared;
    Progress &progress = *shared.progress;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw Failure("no pipe can be made (" + system_text() + ")");
    }
    pid_t own = ::getpid(), child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        be_child(own, progress, work);
    }
    ::close(ends[1]);
    if (child < 0) {
        ::close(ends[0]);
        throw Failure("a child cannot be started (" + system_text() + ")");
    }
    bool has_ended = outlasts(ends[0], progress, step_limit_s);
    ::close(ends[0]);
    if (!has_ended) {
        ::kill(child, SIGKILL);
    }
    int status = status_of(child);
    if (!has_ended) {
        return Crash{progress.place(), "hung"};
    }
    if (WIFSIGNALED(status)) {
        return Crash{progress.place(), "signal " + std::to_string(WTERMSIG(status))};
    }
    if (WEXITSTATUS(status) == GAVE_UP && progress.failure[0]) {
        throw Failure(progress.failure.data());
    }
    if (WEXITSTATUS(status) != 0) {
        return Crash{progress.place(), "exit " + std::to_string(WEXITSTATUS(status))};
    }
    return std::nullopt;
}

} // namespace perfsuite
