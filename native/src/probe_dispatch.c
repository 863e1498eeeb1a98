#include <stddef.h>

#include "probe_timing.h"

typedef void (*ps_operator)(const ps_member *member);

static void ps_empty_operator(const ps_member *member) {
    (void)member;
}

/* Read anew for every call, as an engine reads the operator of the next node. */
static ps_operator volatile ps_next_operator = ps_empty_operator;

static int ps_dispatch_passes(const ps_member *member, void *context, int64_t passes) {
    (void)context;
    int status = PS_OK;
    for (int64_t i = 0; i < passes && status == PS_OK; i++) {
        ps_next_operator(member);
        status = ps_barrier_wait(member->barrier);
    }
    return status;
}

int ps_probe_dispatch(const ps_probe_setup *setup, ps_latency *out) {
    if (ps_check_setup(setup) != PS_OK || out == NULL) {
        return PS_BAD_ARGUMENT;
    }
    ps_pass_times times;
    int status = ps_time_passes(setup, setup->budget_ms * PS_NS_PER_MS, ps_dispatch_passes, NULL, &times);
    if (status == PS_OK) {
        *out = (ps_latency){.best_ns = times.best_ns, .median_ns = times.median_ns, .repetitions = times.repetitions};
    }
    return status;
}
