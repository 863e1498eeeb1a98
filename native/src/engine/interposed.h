/* What the functions of ggml that the library stands before report, and to whom. */
#ifndef PERFSUITE_INTERPOSED_H
#define PERFSUITE_INTERPOSED_H

#include <stdint.h>

#include "perfsuite/recorder.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

struct ggml_cgraph;
struct ggml_backend;

/* Bits of ps_watching: all that the functions look at while nobody records, on every call and every thread. */
enum {
    PS_WATCH_FIRST_ENTRY = 1, /* of thread 0, for the callback recorder; gone once it came */
    PS_WATCH_THREADS = 2,     /* entries of operators and arrivals at barriers, on each thread */
    PS_WATCH_SPLITS = 4,
    PS_WATCH_BACKENDS = 8, /* which backend computes a graph */
};

extern uint32_t ps_watching;

static inline int ps_is_watching(uint32_t bits) {
    return __builtin_expect((__atomic_load_n(&ps_watching, __ATOMIC_RELAXED) & bits) != 0, 0);
}

/* An operator begins on a thread; of a fused pair the first. */
void ps_recorder_entry(int ith, const struct ggml_tensor *tensor);
/* The calling thread arrives at a barrier. */
void ps_recorder_arrival(void);
/* A backend is about to compute. */
void ps_recorder_follow(struct ggml_backend *backend);
/* A backend is given a part of the graph, and the call returns. */
void ps_recorder_split_begin(struct ggml_backend *backend, struct ggml_cgraph *graph);
void ps_recorder_split_end(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
