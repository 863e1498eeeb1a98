/* An independent tracer of phases: wraps what the driver calls, and stamps entry and exit with a clock of its own.
 *
 * The dynamic loader finds these definitions before those of llama.cpp and of the engine library, because LD_PRELOAD
 * loads this library first.  Stamps are CLOCK_MONOTONIC_RAW, which no time service slews: neither the clock nor the
 * code of the suite's own spans.  A call within a call is the outer one's affair and leaves no record, but for two that
 * lie within llama_decode, on the thread that called it: the computation of the graph, and within that gathers of rows,
 * of which the first is that of the token embeddings.
 *
 * The calls are written to the file that PERFSUITE_PHASE_TRACE names when the process ends; a process that made none
 * of them writes nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "llama.h"
#include "perfsuite/call_trace.h"

#define PS_EXPORT __attribute__((visibility("default")))

enum { CAPACITY = 1 << 17 };

static ps_traced_call *calls;
static atomic_uint_fast64_t n_calls;
static ps_trace_instant first;
static _Thread_local int depth;

static int64_t raw_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
}

/* One instant on both clocks; the suite's own is read only to place the trace beside the suite's spans. */
static ps_trace_instant instant(void) {
    struct timespec now;
    ps_trace_instant here = {.raw_ns = raw_ns()};
    clock_gettime(CLOCK_MONOTONIC, &now);
    here.monotonic_ns = (int64_t)now.tv_sec * INT64_C(1000000000) + (int64_t)now.tv_nsec;
    return here;
}

/* Touches every page at the first call, which belongs to a warm-up, so that no fault falls into a span. */
static void prepare(void) {
    if (!calls) {
        calls = malloc(CAPACITY * sizeof(*calls));
        if (calls) {
            memset(calls, 0, CAPACITY * sizeof(*calls));
        }
        first = instant();
    }
}

/* The next definition of a function, after this library's; without one the process cannot go on. */
static void *next_definition(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "perfsuite: phase tracer: no library behind it has %s\n", name);
        abort();
    }
    prepare();
    return found;
}

static void record(ps_traced_function function, int32_t count, int64_t entry_ns, int64_t exit_ns) {
    uint64_t place = atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    if (calls && place < CAPACITY) {
        calls[place] = (ps_traced_call){.entry_ns = entry_ns,
                                        .exit_ns = exit_ns,
                                        .function = (int32_t)function,
                                        .count = count,
                                        .thread = (int32_t)syscall(SYS_gettid)};
    }
}

/* A call from here to the end of its function. */
typedef struct span {
    ps_traced_function function;
    int32_t count;
    bool is_outermost; /* it counts where no other such call is around it */
    int64_t entry_ns;
} span;

static span begin(ps_traced_function function, int32_t count, bool is_outermost) {
    depth += is_outermost;
    span begun = {.function = function, .count = count, .is_outermost = is_outermost};
    begun.entry_ns = raw_ns();
    return begun;
}

static void end(const span *ended) {
    int64_t exit_ns = raw_ns();
    depth -= ended->is_outermost;
    if (!ended->is_outermost || depth == 0) {
        record(ended->function, ended->count, ended->entry_ns, exit_ns);
    }
}

#define SPAN(...) __attribute__((cleanup(end), unused)) const span own = begin(__VA_ARGS__)

#define RESOLVE(function)                             \
    static __typeof__(&(function)) next;              \
    if (!next) {                                      \
        *(void **)&next = next_definition(#function); \
    }

PS_EXPORT int32_t llama_decode(struct llama_context *context, struct llama_batch batch) {
    RESOLVE(llama_decode)
    SPAN(PS_TRACED_DECODE, batch.n_tokens, true);
    return next(context, batch);
}

PS_EXPORT void llama_synchronize(struct llama_context *context) {
    RESOLVE(llama_synchronize)
    SPAN(PS_TRACED_SYNCHRONIZE, 0, true);
    next(context);
}

PS_EXPORT float *llama_get_logits_ith(struct llama_context *context, int32_t i) {
    RESOLVE(llama_get_logits_ith)
    SPAN(PS_TRACED_GET_LOGITS, 0, true);
    return next(context, i);
}

PS_EXPORT llama_token llama_sampler_sample(struct llama_sampler *sampler, struct llama_context *context, int32_t i) {
    RESOLVE(llama_sampler_sample)
    SPAN(PS_TRACED_SAMPLE, 0, true);
    return next(sampler, context, i);
}

PS_EXPORT void ps_phase_copy(float *to, const float *from, size_t n) {
    RESOLVE(ps_phase_copy)
    SPAN(PS_TRACED_COPY, 0, false);
    next(to, from, n);
}

PS_EXPORT float ps_phase_softmax(float *values, size_t n) {
    RESOLVE(ps_phase_softmax)
    SPAN(PS_TRACED_SOFTMAX, 0, false);
    return next(values, n);
}

PS_EXPORT enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t scheduler,
                                                                 struct ggml_cgraph *graph) {
    RESOLVE(ggml_backend_sched_graph_compute_async)
    SPAN(PS_TRACED_GRAPH, 0, false);
    return next(scheduler, graph);
}

struct ggml_compute_params {
    int ith, nth; /* the first two members of ggml's private struct; nothing else of it is read */
};

/* Every gather of rows of the CPU backend comes by, on each thread; the calling thread is ggml's number 0. */
PS_EXPORT void ggml_compute_forward_get_rows(const struct ggml_compute_params *params, struct ggml_tensor *tensor) {
    RESOLVE(ggml_compute_forward_get_rows)
    int64_t entry_ns = raw_ns();
    next(params, tensor);
    int64_t exit_ns = raw_ns();
    if (params->ith == 0 && depth > 0) {
        record(PS_TRACED_GET_ROWS, 0, entry_ns, exit_ns);
    }
}

__attribute__((destructor)) static void write_trace(void) {
    const char *path = getenv("PERFSUITE_PHASE_TRACE");
    uint64_t made = atomic_load(&n_calls);
    if (!path || !made || !calls) {
        return;
    }
    uint64_t kept = made < CAPACITY ? made : CAPACITY;
    ps_trace_header header = {.magic = PS_TRACE_MAGIC, .n_calls = kept, .n_lost = made - kept, .first = first};
    header.last = instant();
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(&header, sizeof(header), 1, out) != 1 || fwrite(calls, sizeof(*calls), kept, out) != kept ||
        fclose(out) != 0) {
        fprintf(stderr, "perfsuite: phase tracer: %s cannot be written\n", path);
    }
}
