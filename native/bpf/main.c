/* perfsuite-bpf: records one process's llama.cpp with the kernel's probes and writes the log to standard output.
 *
 * Meant to be owned by root and to have CAP_BPF and CAP_PERFMON as file capabilities; started by the user who owns the
 * process.  Standard input takes commands: `levels N` switches what is recorded, which is answered by `levels N` on
 * standard error with what is recorded from then on; the end of the file ends it.  Standard error also says `ready`,
 * `note: ...` or, with exit code 1, `error: ...`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "counters.h"
#include "privileges.h"
#include "run_statistics.h"
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
        ps_enable_run_statistics();
    }
    raise_limits();
    works = works && ps_drop_privileges(problem);
    int n_cpus = libbpf_num_possible_cpus();
    works = works && (n_cpus > 0 || ps_fail(problem, "the number of processors cannot be told"));
    int *fds = works ? ps_open_counters(options, n_cpus) : NULL;
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
