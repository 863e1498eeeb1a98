/* How every probe is timed: passes over some work, repeated by a team of threads until a budget is spent. */
#ifndef PERFSUITE_PROBE_TIMING_H
#define PERFSUITE_PROBE_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "perfsuite/probe.h"
#include "perfsuite/threads.h"

#define PS_MAX_REPETITIONS 512
#define PS_MAX_BUDGET_MS INT64_C(600000)
#define PS_NS_PER_MS INT64_C(1000000)

/* Do a thread's share of `passes` passes; returns a ps_status. */
typedef int (*ps_work)(const ps_member *member, void *context, int64_t passes);

/* The time of one pass over all repetitions. */
typedef struct ps_pass_times {
    double best_ns;
    double median_ns;
    int64_t repetitions;
} ps_pass_times;

/* What the first thread decides after every repetition. */
typedef struct ps_schedule {
    int64_t deadline_ns;
    int64_t wanted_ns; /* the least that a repetition should last, so that its stamps do not count */
    int64_t passes;    /* of the next repetition */
    int64_t n_seen;
    int64_t n_kept;
    bool done;
    double pass_ns[PS_MAX_REPETITIONS];
} ps_schedule;

void ps_schedule_open(ps_schedule *schedule, int64_t begin_ns, int64_t budget_ns);

/* Take in that a repetition of `schedule->passes` lasted `duration_ns` and ended at `now_ns`.  The first one, and those
 * that were too short, warm up only; the last within the budget is kept even so. */
void ps_schedule_add(ps_schedule *schedule, int64_t duration_ns, int64_t now_ns);

/* Best and median of what was kept; sorts it. */
ps_pass_times ps_schedule_close(ps_schedule *schedule);

int ps_check_setup(const ps_probe_setup *setup);

/* Time `work` on a team of the setup's threads within `budget_ns` from now, whatever the setup's own budget. */
int ps_time_passes(const ps_probe_setup *setup, int64_t budget_ns, ps_work work, void *context, ps_pass_times *out);

/* `amount` a pass as a rate. */
ps_rate ps_rate_of(double amount, const ps_pass_times *times);

#endif
