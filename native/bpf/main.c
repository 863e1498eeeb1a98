/* perfsuite-bpf: records one process's llama.cpp with the kernel's probes and writes the log to standard output.
 *
 * Meant to be owned by root and to have CAP_BPF and CAP_PERFMON as file capabilities; started by the user who owns the
 * process.  Standard input takes commands: `levels N` switches what is recorded, which is answered by `levels N` on
 * standard error with what is recorded from then on; the end of the file ends it.  Standard error also says `ready`,
 * `note: ...` or, with exit code 1, `error: ...`.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privileges.h"
#include "session.h"

static int fail(const ps_problem *problem) {
    fprintf(stderr, "error: %s\n", problem->text);
    return EXIT_FAILURE;
}

/* Before Linux 5.11 the kernel counts its maps as locked memory; a counter is a file on each processor. */
static void raise_limits(void) {
    struct rlimit files;
    struct rlimit unlimited = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &unlimited);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

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

/* Opens what this machine counts and leaves the rest out of the options, with a note on standard error for each. The
 * descriptors lie at counter x n_cpus + processor, -1 where a processor is absent; NULL where there is no memory. */
static int *open_counters(ps_options *options, int n_cpus) {
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

/* Has the kernel time every program of the machine, until this process ends; takes CAP_SYS_ADMIN. */
static void enable_run_statistics(void) {
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) { /* the descriptor stays open as long as the process lives */
        fprintf(stderr, "note: the kernel does not time its programs (%s); it needs root\n", strerror(errno));
    }
}

/* All that may take more than the two capabilities: a target of root's own can be read by a process alone that may do
 * as much. */
static bool find_target(ps_session *session, const ps_options *options, ps_problem *problem) {
    ps_probes_begin(&session->probes);
    if (!ps_open_target(options->pid, &session->target, problem) ||
        !ps_find_functions(options->pid, session->probes.functions, PS_N_FUNCTIONS, problem)) {
        return false;
    }
    return ps_is_alive(&session->target) || ps_fail(problem, "process %d: has ended", options->pid);
}

static bool run(ps_options *options, ps_problem *problem) {
    ps_session *session = calloc(1, sizeof(*session));
    if (!session) {
        return ps_fail(problem, "no memory");
    }
    session->options = options;
    bool works = find_target(session, options, problem);
    if (works && options->with_statistics) {
        enable_run_statistics();
    }
    raise_limits();
    works = works && ps_drop_privileges(problem);
    int n_cpus = libbpf_num_possible_cpus();
    works = works && (n_cpus > 0 || ps_fail(problem, "the number of processors cannot be told"));
    int *fds = works ? open_counters(options, n_cpus) : NULL;
    works = works && (fds || ps_fail(problem, "no memory")) &&
            ps_probes_load(&session->probes, options, n_cpus, fds, problem) &&
            ps_session_run(session, problem);
    free(fds);
    free(session);
    return works;
}

int main(int argc, char **argv) {
    static ps_options options;
    ps_problem problem = {{0}};
    if (!ps_parse_options(argc, argv, &options, &problem)) {
        return fail(&problem);
    }
    if (options.action == PS_VERSION) {
        printf("perfsuite-bpf %d\n", PS_BPF_VERSION);
        return EXIT_SUCCESS;
    }
    ps_leave_inheritance();
    if (!ps_check_machine(&problem)) {
        return fail(&problem);
    }
    if (options.action == PS_CHECK) {
        raise_limits();
        return ps_drop_privileges(&problem) && ps_probes_check(&problem) ? EXIT_SUCCESS : fail(&problem);
    }
    return run(&options, &problem) ? EXIT_SUCCESS : fail(&problem);
}
