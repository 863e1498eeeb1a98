#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_one(const ps_counter_option *counter, int cpu) {
    struct perf_event_attr attr = {
        .type = counter->type,
        .size = sizeof(attr),
        .config = counter->config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* On all processors that are there; false, with none left open, where not one has it. */
static bool open_everywhere(const ps_counter_option *counter, int *fds, int n_cpus, int *reason) {
    bool is_open = false;
    *reason = ENOENT;
    for (int cpu = 0; cpu < n_cpus; cpu++) {
        fds[cpu] = open_one(counter, cpu);
        if (fds[cpu] >= 0) {
            is_open = true;
        } else if (errno != ENODEV) {
            *reason = errno;
        }
    }
    return is_open;
}

int *ps_open_counters(ps_options *options, int n_cpus) {
    int *fds = malloc(sizeof(int) * (size_t)n_cpus * PS_BPF_MAX_COUNTERS);
    uint32_t n_open = 0;
    for (uint32_t i = 0; fds && i < options->n_counters; i++) {
        int reason = 0;
        if (open_everywhere(&options->counters[i], fds + (size_t)n_open * (size_t)n_cpus, n_cpus, &reason)) {
            options->counters[n_open++] = options->counters[i];
        } else {
            fprintf(stderr, "note: counter %s is left out: %s (%s)\n", options->counters[i].name,
                    reason == EACCES ? "this kernel lets root alone count; root allows it to others, until the next "
                                       "boot: sysctl kernel.perf_event_paranoid=2"
                                     : "this machine does not count it",
                    strerror(reason));
        }
    }
    options->n_counters = n_open;
    options->settings.n_counters = n_open;
    return fds;
}
