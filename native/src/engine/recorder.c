/* The life of a recorder; see perfsuite/recorder.h for what it does and why. */
#include "perfsuite/recorder.h"

#include <stdio.h>

#include "recorder_state.h"

ps_recorder *ps_recorder_open(ps_recorder_kind kind, uint64_t capacity, int32_t n_threads) {
    ps_recorder *r = (ps_recorder *)calloc(1, sizeof(*r));
    if (!r) {
        return NULL;
    }
    r->kind = kind;
    r->n_threads = n_threads < 1 ? 1 : n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
    r->asked = (const struct ggml_tensor **)calloc(MAX_NODES, sizeof(*r->asked));
    r->may_be_last = (uint8_t *)calloc(MAX_NODES, 1);
    r->graphs = (ps_graph *)calloc(MAX_GRAPHS, sizeof(*r->graphs));
    bool opened = r->asked && r->may_be_last && r->graphs && ps_ring_open(&r->ring, capacity);
    if (opened && kind == PS_RECORDER_PRELOAD) {
        opened = ps_threads_open(r, capacity);
    }
    if (opened && kind == PS_RECORDER_GROUPS) {
        r->groups = (ps_event *)calloc(MAX_NODES, sizeof(*r->groups));
        opened = r->groups != NULL;
    }
    if (!opened) {
        ps_recorder_close(r);
        return NULL;
    }
    return r;
}

void ps_recorder_close(ps_recorder *r) {
    if (!r) {
        return;
    }
    ps_hooks_forget(r);
    ps_threads_close(r);
    ps_ring_close(&r->ring);
    ps_graphs_free(r);
    free(r->may_be_last);
    free((void *)r->asked);
    free(r->stored);
    free(r->thread_stored);
    free(r->choices);
    free(r->ids);
    free(r->splits);
    free(r->groups);
    free(r);
}

void ps_recorder_inject(ps_recorder *r, const char *op, double ratio, int64_t extra_ns, double ticks_per_ns) {
    snprintf(r->inject_op, sizeof(r->inject_op), "%s", op);
    r->inject_ratio = ratio;
    r->inject_extra_ticks = (double)extra_ns * ticks_per_ns;
}

void ps_recorder_clock(ps_clock_point *now) {
    enum { N_BRACKETS = 16 };
    *now = ps_calibrate(N_BRACKETS);
}
