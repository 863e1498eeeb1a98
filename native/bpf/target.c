#define _GNU_SOURCE
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATUS_BYTES = 8192 };

static bool read_text(const char *path, char *text, size_t n_bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n_read = fd < 0 ? -1 : read(fd, text, n_bytes - 1);
    if (fd >= 0) {
        close(fd);
    }
    text[n_read > 0 ? n_read : 0] = '\0';
    return n_read > 0;
}

bool ps_open_target(int32_t pid, ps_target *target, ps_problem *problem) {
    target->pid = pid;
    target->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (target->pidfd < 0) {
        return ps_fail(problem, errno == ESRCH ? "process %" PRId32 ": there is none"
                                : errno == ENOSYS ? "process %" PRId32 ": no pidfd; Linux 5.8 or newer is needed"
                                                  : "process %" PRId32 ": a thread, not a process",
                       pid);
    }
    return ps_check_user(target, problem);
}

bool ps_parse_uids(const char *status, uint32_t uids[4]) {
    const char *line = strstr(status, "\nUid:");
    return line && sscanf(line, "\nUid: %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &uids[0], &uids[1], &uids[2],
                          &uids[3]) == 4;
}

bool ps_check_user(const ps_target *target, ps_problem *problem) {
    char path[64], status[STATUS_BYTES];
    uint32_t uids[4], own = getuid();
    snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", target->pid);
    if (!read_text(path, status, sizeof(status)) || !ps_parse_uids(status, uids)) {
        return ps_fail(problem, "process %" PRId32 ": its user cannot be told", target->pid);
    }
    for (int i = 0; i < 4; i++) {
        if (uids[i] != own) {
            return ps_fail(problem, "process %" PRId32 ": belongs to user %" PRIu32 ", not to user %" PRIu32
                                    " who asks; only one's own processes are recorded",
                           target->pid, uids[i], own);
        }
    }
    return true;
}

bool ps_is_alive(const ps_target *target) {
    struct pollfd watched = {.fd = target->pidfd, .events = POLLIN};
    return poll(&watched, 1, 0) == 0;
}

bool ps_thread_name(const ps_target *target, uint32_t tid, char name[16]) {
    char path[64], text[32];
    snprintf(path, sizeof(path), "/proc/%" PRId32 "/task/%" PRIu32 "/comm", target->pid, tid);
    if (!read_text(path, text, sizeof(text))) {
        return false;
    }
    text[strcspn(text, "\n")] = '\0';
    memset(name, 0, 16);
    memcpy(name, text, strnlen(text, 15));
    return true;
}
