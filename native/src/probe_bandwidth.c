#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perfsuite/clock.h"
#include "probe_kernels.h"
#include "probe_timing.h"

/* Arrays of one thread begin this much beyond a multiple of 4 KiB from each other: processors that compare the low 12
 * bits of a load with those of the stores before it would otherwise see conflicts where there are none. */
#define PS_SKEW_BYTES 1088

#define PS_PAGE_BYTES ((size_t)4096)
#define PS_HUGE_PAGE_BYTES ((size_t)2 << 20)

/* A region of memory for each thread, wherein its arrays follow each other. */
typedef struct ps_memory {
    unsigned char *bytes;
    size_t region_bytes;
} ps_memory;

typedef struct ps_arrays {
    const ps_memory *memory;
    ps_stream stream;
    size_t array_bytes;
    size_t stride_bytes; /* from one array of a thread to the next; 0 where there is one only */
} ps_arrays;

static size_t ps_rounded_up(size_t n, size_t step) {
    return (n + step - 1) / step * step;
}

/* Bytes of one array of one thread. */
static size_t ps_array_bytes(int64_t working_set_bytes, int n_threads, int n_arrays) {
    size_t n_shares = (size_t)n_threads * (size_t)n_arrays;
    return (size_t)working_set_bytes / n_shares / PS_STREAM_STEP * PS_STREAM_STEP;
}

static int ps_memory_open(ps_memory *memory, int64_t working_set_bytes, int n_threads) {
    size_t share_bytes = (size_t)working_set_bytes / (size_t)n_threads;
    memory->region_bytes = ps_rounded_up(share_bytes + PS_N_PATTERNS * (PS_PAGE_BYTES + PS_SKEW_BYTES), PS_PAGE_BYTES);
    size_t n_bytes = ps_rounded_up(memory->region_bytes * (size_t)n_threads, PS_HUGE_PAGE_BYTES);
    memory->bytes = aligned_alloc(PS_HUGE_PAGE_BYTES, n_bytes);
    if (memory->bytes == NULL) {
        return PS_NO_MEMORY;
    }
    madvise(memory->bytes, n_bytes, MADV_HUGEPAGE); /* where refused, small pages do, a little slower */
    return PS_OK;
}

/* First written by the thread that will use it, so that it lies on that thread's memory node. */
static int ps_touch(const ps_member *member, void *context) {
    const ps_memory *memory = context;
    memset(memory->bytes + (size_t)member->thread * memory->region_bytes, 0, memory->region_bytes);
    return PS_OK;
}

static int ps_stream_passes(const ps_member *member, void *context, int64_t passes) {
    const ps_arrays *arrays = context;
    unsigned char *a = arrays->memory->bytes + (size_t)member->thread * arrays->memory->region_bytes;
    const unsigned char *b = a + arrays->stride_bytes;
    const unsigned char *c = b + arrays->stride_bytes;
    for (int64_t i = 0; i < passes; i++) {
        uint64_t sum = arrays->stream(a, b, c, arrays->array_bytes);
        __asm__ volatile("" ::"r"(sum) : "memory");
    }
    return PS_OK;
}

static int ps_time_pattern(const ps_probe_setup *setup, const ps_memory *memory, int pattern,
                           int64_t working_set_bytes, int64_t budget_ns, ps_rate *out) {
    int n_arrays = pattern + 1;
    size_t array_bytes = ps_array_bytes(working_set_bytes, setup->n_threads, n_arrays);
    ps_arrays arrays = {
        .memory = memory,
        .stream = ps_supported_stream(0)->by_pattern[pattern],
        .array_bytes = array_bytes,
        .stride_bytes = n_arrays > 1 ? ps_rounded_up(array_bytes, PS_PAGE_BYTES) + PS_SKEW_BYTES : 0,
    };
    ps_pass_times times;
    int status = ps_time_passes(setup, budget_ns, ps_stream_passes, &arrays, &times);
    if (status == PS_OK) {
        *out = ps_rate_of((double)array_bytes * n_arrays * setup->n_threads, &times);
    }
    return status;
}

static int ps_time_patterns(const ps_probe_setup *setup, ps_memory *memory, int64_t working_set_bytes,
                            ps_bandwidth *out) {
    int64_t budget_ns = setup->budget_ms * PS_NS_PER_MS;
    int64_t deadline_ns = ps_now_ns() + budget_ns;
    ps_rate *rates[PS_N_PATTERNS] = {&out->read, &out->copy, &out->triad};
    int status = ps_team_run(setup->n_threads, setup->pinned, ps_touch, memory);
    for (int i = 0; i < PS_N_PATTERNS && status == PS_OK; i++) {
        int64_t share_ns = (deadline_ns - ps_now_ns()) / (PS_N_PATTERNS - i);
        share_ns = share_ns > budget_ns / 8 ? share_ns : budget_ns / 8;
        status = ps_time_pattern(setup, memory, i, working_set_bytes, share_ns, rates[i]);
    }
    return status;
}

int ps_probe_bandwidth(const ps_probe_setup *setup, int64_t working_set_bytes, ps_bandwidth *out) {
    if (ps_check_setup(setup) != PS_OK || out == NULL || working_set_bytes < 1 ||
        ps_array_bytes(working_set_bytes, setup->n_threads, PS_N_PATTERNS) == 0) {
        return PS_BAD_ARGUMENT;
    }
    ps_memory memory;
    int status = ps_memory_open(&memory, working_set_bytes, setup->n_threads);
    ps_bandwidth bandwidth;
    if (status == PS_OK) {
        status = ps_time_patterns(setup, &memory, working_set_bytes, &bandwidth);
        free(memory.bytes);
    }
    if (status == PS_OK) {
        *out = bandwidth;
    }
    return status;
}
