/* Opens a kernel probe on a function of this process: perf_event_open(2) with the PMU 'uprobe'.
 *
 * Each hit of the calling thread is a sample of 24 bytes in the event's ring: header, identifier, time on
 * CLOCK_MONOTONIC_RAW, which the kernel reads itself.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* `type` is the PMU's number in /sys/bus/event_source/devices/uprobe/type, `offset` the function's place in the file.
 * Returns a file descriptor, the event still disabled, or the negative errno. */
int ps_uprobe_open(uint32_t type, const char *path, uint64_t offset, int at_return) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof(attributes));
    attributes.type = type;
    attributes.size = sizeof(attributes);
    attributes.config = at_return ? 1 : 0; /* the PMU's format 'retprobe' is bit 0 */
    attributes.config1 = (uint64_t)(uintptr_t)path;
    attributes.config2 = offset;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
    attributes.disabled = 1;
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC_RAW;
    long descriptor = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return descriptor < 0 ? -errno : (int)descriptor;
}
