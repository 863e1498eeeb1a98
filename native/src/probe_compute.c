#include "probe_kernels.h"
#include "probe_timing.h"

/* Iterations of a pass: some microseconds. */
enum { PS_ITERATIONS = 1000 };

/* All instruction sets take turns this often: the widest is not always the fastest, and what disturbs one turn of the
 * fastest should not hide it. */
enum { PS_ROUNDS = 4 };

static int ps_compute_passes(const ps_member *member, void *context, int64_t passes) {
    (void)member;
    const ps_compute_kernel *const *kernel = context;
    char first[PS_ACCUMULATOR_BYTES];
    (*kernel)->run(passes * PS_ITERATIONS, first);
    return PS_OK;
}

static int ps_time_kernel(const ps_probe_setup *setup, const ps_compute_kernel *kernel, int64_t budget_ns,
                          ps_rate *out) {
    ps_pass_times times;
    int status = ps_time_passes(setup, budget_ns, ps_compute_passes, &kernel, &times);
    if (status == PS_OK) {
        *out = ps_rate_of(kernel->flops_per_iteration * PS_ITERATIONS * setup->n_threads, &times);
    }
    return status;
}

static int ps_count_kernels(int type) {
    int n = 0;
    while (ps_supported_compute(type, n) != NULL) {
        n++;
    }
    return n;
}

static int ps_time_round(const ps_probe_setup *setup, int type, int64_t budget_ns, ps_rate *best) {
    int status = PS_OK;
    const ps_compute_kernel *kernel;
    for (int i = 0; status == PS_OK && (kernel = ps_supported_compute(type, i)) != NULL; i++) {
        ps_rate rate = {0};
        status = ps_time_kernel(setup, kernel, budget_ns, &rate);
        *best = rate.best_per_s > best->best_per_s ? rate : *best;
    }
    return status;
}

int ps_probe_compute(const ps_probe_setup *setup, int type, ps_rate *out) {
    if (ps_check_setup(setup) != PS_OK || type < PS_FP32 || type > PS_F16 || out == NULL) {
        return PS_BAD_ARGUMENT;
    }
    int n_kernels = ps_count_kernels(type);
    int status = n_kernels > 0 ? PS_OK : PS_UNSUPPORTED;
    ps_rate best = {0};
    for (int i = 0; i < PS_ROUNDS && status == PS_OK; i++) {
        status = ps_time_round(setup, type, setup->budget_ms * PS_NS_PER_MS / PS_ROUNDS / n_kernels, &best);
    }
    if (status == PS_OK) {
        *out = best;
    }
    return status;
}
