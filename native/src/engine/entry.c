/* Stands before four functions of ggml, of which the recorder wants to hear.
 *
 * The dynamic loader finds these definitions before ggml's own, because the library that holds them is loaded before
 * ggml's, either by the worker or by LD_PRELOAD, and ggml calls its exported functions through the table that the loader
 * fills.  The CPU backend calls ggml_cpu_extra_compute_forward first for every operator on every thread, but for a norm
 * and its weight, which it computes as one by a function of their own; each thread calls ggml_barrier behind every
 * operator, inside some, and at the end of a graph.  The scheduler hands each split to its backend by
 * ggml_backend_graph_compute_async.
 *
 * A barrier is called a thousand times a token on each thread, so while nobody records, each function is one test and
 * one jump.  The first two members of ggml_compute_params are the thread's number and the number of threads; nothing
 * else of that private struct is read.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interposed.h"

#define EXPORT __attribute__((visibility("default")))

struct ggml_threadpool;

struct ggml_compute_params {
    int ith, nth;
};

typedef bool forward_function(struct ggml_compute_params *, struct ggml_tensor *);
typedef void fused_function(const struct ggml_compute_params *, struct ggml_tensor *, struct ggml_tensor *);
typedef void barrier_function(struct ggml_threadpool *);
typedef int graph_function(struct ggml_backend *, struct ggml_cgraph *);

EXPORT forward_function ggml_cpu_extra_compute_forward;
EXPORT fused_function ggml_compute_forward_rms_norm_mul_fused;
EXPORT barrier_function ggml_barrier;
EXPORT graph_function ggml_backend_graph_compute_async;

static forward_function find_and_forward;
static fused_function find_and_fuse;
static barrier_function find_and_wait;
static graph_function find_and_compute;

/* ggml's own functions, on the cache line of nothing that changes; until they are found, what finds them. */
static struct {
    _Alignas(64) forward_function *forward;
    fused_function *fused;
    barrier_function *barrier;
    graph_function *graph;
} next = {find_and_forward, find_and_fuse, find_and_wait, find_and_compute};

static void find(const char *library_name, const char *symbol, void *function) {
    void *library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, symbol) : dlsym(RTLD_NEXT, symbol);
    if (found) {
        memcpy(function, &found, sizeof(found));
    }
}

/* When the library is loaded, so that no evaluation pays for it; what is not there yet is looked for when called. */
__attribute__((constructor)) static void find_all(void) {
    static const char cpu[] = "libggml-cpu.so.0", base[] = "libggml-base.so.0";
    find(cpu, "ggml_cpu_extra_compute_forward", &next.forward);
    find(cpu, "ggml_compute_forward_rms_norm_mul_fused", &next.fused);
    find(cpu, "ggml_barrier", &next.barrier);
    find(base, "ggml_backend_graph_compute_async", &next.graph);
}

static void give_up(const char *symbol) {
    fprintf(stderr, "perfsuite: %s is called and cannot be found in ggml's libraries\n", symbol);
    abort();
}

static bool find_and_forward(struct ggml_compute_params *params, struct ggml_tensor *tensor) {
    find_all();
    if (next.forward == find_and_forward) {
        give_up("ggml_cpu_extra_compute_forward");
    }
    return next.forward(params, tensor);
}

static void find_and_fuse(const struct ggml_compute_params *params, struct ggml_tensor *norm, struct ggml_tensor *mul) {
    find_all();
    if (next.fused == find_and_fuse) {
        give_up("ggml_compute_forward_rms_norm_mul_fused");
    }
    next.fused(params, norm, mul);
}

static void find_and_wait(struct ggml_threadpool *pool) {
    find_all();
    if (next.barrier == find_and_wait) {
        give_up("ggml_barrier");
    }
    next.barrier(pool);
}

static int find_and_compute(struct ggml_backend *backend, struct ggml_cgraph *graph) {
    find_all();
    if (next.graph == find_and_compute) {
        give_up("ggml_backend_graph_compute_async");
    }
    return next.graph(backend, graph);
}

bool ggml_cpu_extra_compute_forward(struct ggml_compute_params *params, struct ggml_tensor *tensor) {
    if (ps_is_watching(PS_WATCH_FIRST_ENTRY | PS_WATCH_THREADS)) {
        ps_recorder_entry(params->ith, tensor);
    }
    return next.forward(params, tensor);
}

void ggml_compute_forward_rms_norm_mul_fused(const struct ggml_compute_params *params, struct ggml_tensor *norm,
                                             struct ggml_tensor *mul) {
    if (ps_is_watching(PS_WATCH_FIRST_ENTRY | PS_WATCH_THREADS)) {
        ps_recorder_entry(params->ith, norm);
    }
    next.fused(params, norm, mul);
}

void ggml_barrier(struct ggml_threadpool *pool) {
    if (ps_is_watching(PS_WATCH_THREADS)) {
        ps_recorder_arrival();
    }
    next.barrier(pool);
}

int ggml_backend_graph_compute_async(struct ggml_backend *backend, struct ggml_cgraph *graph) {
    if (ps_is_watching(PS_WATCH_BACKENDS)) {
        ps_recorder_follow(backend);
    }
    if (!ps_is_watching(PS_WATCH_SPLITS)) {
        return next.graph(backend, graph);
    }
    ps_recorder_split_begin(backend, graph);
    int status = next.graph(backend, graph);
    ps_recorder_split_end();
    return status;
}
