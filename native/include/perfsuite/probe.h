/* Probes of what a device can do at its best: memory bandwidth, arithmetic peaks and the cost of one dispatch.
 *
 * A probe repeats its work until its budget is spent and reports the best and the median repetition.  The best is the
 * ceiling: whatever disturbs a repetition only slows it.  A repetition lasts from the first thread's start to the last
 * thread's end, so no share of the work falls outside of it.
 */
#ifndef PERFSUITE_PROBE_H
#define PERFSUITE_PROBE_H

#include <stdint.h>

#include "perfsuite/probe_status.h"

#if defined(__GNUC__)
#define PS_API __attribute__((visibility("default")))
#else
#define PS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How a probe runs: on 1 to 1024 threads, for `budget_ms` (1 to 600000) with its warm-up.  The budget is overrun by one
 * repetition at most; a slow machine may need more for its memory (see ps_probe_bandwidth). */
typedef struct ps_probe_setup {
    int32_t n_threads;
    int32_t pinned;
    int64_t budget_ms;
} ps_probe_setup;

/* Bytes or FLOPs per second. */
typedef struct ps_rate {
    double best_per_s;
    double median_per_s;
    int64_t repetitions;
} ps_rate;

typedef struct ps_latency {
    double best_ns;
    double median_ns;
    int64_t repetitions;
} ps_latency;

/* What three uses of the same working set move per second.  All arrays count, so that the working set is their sum; the
 * lines that a store first reads into the cache (write-allocate) are not counted. */
typedef struct ps_bandwidth {
    ps_rate read;  /* every byte of a[] is loaded */
    ps_rate copy;  /* a[i] = b[i] */
    ps_rate triad; /* a[i] = b[i] + s * c[i] */
} ps_bandwidth;

/* What is multiplied and added; one multiply-add is 2 FLOPs. */
enum ps_type {
    PS_FP32 = 0, /* float fused multiply-add */
    PS_INT8 = 1, /* int8 dot product into int32 */
    PS_F16 = 2,  /* bfloat16 dot product or half fused multiply-add; PS_UNSUPPORTED where there is none */
};

/* Bandwidth over a working set split evenly among the threads (rounded down to 512 bytes an array and thread, of which
 * each must have one).  First use of the memory is part of the budget, but each pattern has an eighth of it or more. */
PS_API int ps_probe_bandwidth(const ps_probe_setup *setup, int64_t working_set_bytes, ps_bandwidth *out);

/* Peak of all threads together, operands in registers, on the fastest of the instructions that the processor has. */
PS_API int ps_probe_compute(const ps_probe_setup *setup, int type, ps_rate *out);

/* One empty operator: a call through a pointer on every thread, then a barrier among them. */
PS_API int ps_probe_dispatch(const ps_probe_setup *setup, ps_latency *out);

/* A status in words, never NULL. */
PS_API const char *ps_status_text(int status);

#ifdef __cplusplus
}
#endif

#endif
