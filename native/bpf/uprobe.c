#include "uprobe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/bpf.h since 6.6; the headers here may be older. */
enum { LINK_CREATE = 28, TRACE_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

/* The part of union bpf_attr that creates such a link. */
typedef struct multi_link_attr {
    uint32_t program_fd, target_fd, attach_type, flags;
    uint64_t path, offsets, reference_offsets, cookies;
    uint32_t n_offsets, multi_flags, pid, reserved;
} multi_link_attr;

static int create_multi_link(int program_fd, const char *path, uint64_t offset, int32_t pid, bool is_at_return) {
    multi_link_attr attr = {
        .program_fd = (uint32_t)program_fd,
        .attach_type = TRACE_UPROBE_MULTI,
        .path = (uint64_t)(uintptr_t)path,
        .offsets = (uint64_t)(uintptr_t)&offset,
        .n_offsets = 1,
        .multi_flags = is_at_return ? UPROBE_MULTI_RETURN : 0,
        .pid = (uint32_t)pid,
    };
    return (int)syscall(SYS_bpf, LINK_CREATE, &attr, sizeof(attr));
}

static bool read_pmu_type(uint32_t *type) {
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
    bool is_read = file && fscanf(file, "%u", type) == 1;
    if (file) {
        fclose(file);
    }
    return is_read;
}

/* An event on the first byte of this program's file, where no code is: it never fires, but whether it may be opened
 * shows. */
bool ps_choose_uprobe_way(ps_uprobe_way *way, ps_problem *problem) {
    uint32_t type = 0;
    if (!read_pmu_type(&type)) {
        return ps_fail(problem, "no uprobe PMU: the kernel needs CONFIG_UPROBE_EVENTS");
    }
    struct perf_event_attr attr = {
        .type = type, .size = sizeof(attr), .config1 = (uint64_t)(uintptr_t)"/proc/self/exe", .disabled = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, getpid(), -1, -1, PERF_FLAG_FD_CLOEXEC);
    int reason = errno;
    *way = fd >= 0 || (reason != EACCES && reason != EPERM) ? PS_BY_PERF_EVENT : PS_BY_MULTI_LINK;
    if (fd >= 0) {
        close(fd);
    }
    return true;
}

void ps_prepare_uprobe(struct bpf_program *program, ps_uprobe_way way) {
    if (way == PS_BY_MULTI_LINK) {
        bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)TRACE_UPROBE_MULTI);
    }
}

bool ps_attach_uprobe(ps_uprobe *uprobe, ps_uprobe_way way, const struct bpf_program *program, int32_t pid,
                      const ps_function *function, bool is_at_return) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", function->fd); /* the very file, whatever its name is now */
    if (way == PS_BY_PERF_EVENT) {
        LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = is_at_return);
        uprobe->link = bpf_program__attach_uprobe_opts(program, pid, path, function->offset, &options);
        return uprobe->link;
    }
    int fd = create_multi_link(bpf_program__fd(program), path, function->offset, pid, is_at_return);
    uprobe->fd = fd < 0 ? 0 : fd + 1;
    if (fd < 0 && (errno == EINVAL || errno == E2BIG)) {
        errno = EOPNOTSUPP; /* a kernel before 6.6 */
    }
    return fd >= 0;
}

void ps_detach_uprobe(ps_uprobe *uprobe) {
    bpf_link__destroy(uprobe->link);
    if (uprobe->fd) {
        close(uprobe->fd - 1);
    }
    memset(uprobe, 0, sizeof(*uprobe));
}
