#define _GNU_SOURCE
#include "privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

/* The number that the kernel gives the first namespace of processes: PROC_PID_INIT_INO of linux/proc_ns.h. */
static const char INITIAL_PID_NAMESPACE[] = "pid:[4026531836]";

static const uint64_t KEPT = UINT64_C(1) << CAP_BPF | UINT64_C(1) << CAP_PERFMON;

static bool get_capabilities(struct __user_cap_data_struct sets[2]) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, sets) == 0;
}

static void close_inherited(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0) {
        return;
    }
#endif
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    for (rlim_t fd = 3; fd < limit.rlim_cur && fd < 1 << 20; fd++) {
        close((int)fd);
    }
}

/* What is opened later may not take the place of a stream that was closed; nothing is read from there, and no write
 * works. */
static void keep_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) {
            _exit(EXIT_FAILURE);
        }
    }
}

void ps_leave_inheritance(void) {
    keep_streams();
    close_inherited();
    clearenv();
    enum { MAX_CPUS = 8192 };
    size_t n_bytes = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *all = CPU_ALLOC(MAX_CPUS);
    if (all) {
        memset(all, 0xff, n_bytes); /* the kernel takes those that are allowed */
        sched_setaffinity(0, n_bytes, all);
        CPU_FREE(all);
    }
    struct sched_param usual = {0};
    sched_setscheduler(0, SCHED_OTHER, &usual);
    setpriority(PRIO_PROCESS, 0, 0);
}

static bool check_capabilities(ps_problem *problem) {
    struct __user_cap_data_struct sets[2] = {0};
    if (!get_capabilities(sets)) {
        return ps_fail(problem, "the kernel does not tell capabilities (%s)", strerror(errno));
    }
    uint64_t permitted = sets[0].permitted | (uint64_t)sets[1].permitted << 32;
    if (!(permitted & UINT64_C(1) << CAP_BPF)) {
        return ps_fail(problem, "no CAP_BPF; install the helper by root, with file capabilities cap_bpf,cap_perfmon=ep");
    }
    return permitted & UINT64_C(1) << CAP_PERFMON ||
           ps_fail(problem, "no CAP_PERFMON; install the helper by root, with file capabilities cap_bpf,cap_perfmon=ep");
}

bool ps_check_machine(ps_problem *problem) {
    char name[64] = "";
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        return ps_fail(problem, "no BTF: /sys/kernel/btf/vmlinux is not there; the kernel needs CONFIG_DEBUG_INFO_BTF");
    }
    if (access("/sys/bus/event_source/devices/uprobe/type", R_OK) != 0) {
        return ps_fail(problem, "no uprobe PMU: the kernel needs CONFIG_UPROBE_EVENTS");
    }
    if (readlink("/proc/self/ns/pid", name, sizeof(name) - 1) < 0 || strcmp(name, INITIAL_PID_NAMESPACE) != 0) {
        return ps_fail(problem, "in a container: not in the first namespace of processes, whose numbers the kernel's "
                                "programs see; run on the host");
    }
    return check_capabilities(problem);
}

bool ps_drop_privileges(ps_problem *problem) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    /* The bounding set takes CAP_SETPCAP; without it nothing can be gained but by exec, which no_new_privs rules out. */
    for (int i = 0; i < 64; i++) {
        if (!(KEPT >> i & 1)) {
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        }
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        sets[i].permitted = sets[i].effective = (uint32_t)(KEPT >> 32 * i);
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_capset, &header, sets) != 0 || !get_capabilities(sets)) {
        return ps_fail(problem, "privileges cannot be dropped (%s)", strerror(errno));
    }
    uint64_t left = sets[0].permitted | (uint64_t)sets[1].permitted << 32;
    return left == KEPT || ps_fail(problem, "privileges cannot be dropped: %#llx are left", (unsigned long long)left);
}
