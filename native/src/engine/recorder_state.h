/* What the recorder's own files share: its state, and what each of them does for the others. */
#ifndef PERFSUITE_RECORDER_STATE_H
#define PERFSUITE_RECORDER_STATE_H

#include <stdlib.h>

#include "ggml.h"
#include "perfsuite/recorder.h"

#ifdef __GNUC__
#pragma GCC visibility push(hidden)
#endif

enum { MAX_NODES = 65536, MAX_GRAPHS = 1024, MAX_THREADS = 256, MAX_BACKENDS = 16, MAX_DEVICES = 32 };

typedef enum ps_state { STATE_IDLE, STATE_ASKING, STATE_COMPUTING } ps_state;

/* What a report of a node's end means. */
typedef struct ps_report {
    uint32_t index; /* of the event that is stored: PS_EVENT_NOTHING, or the operator's number from 1 on */
    bool is_slowed; /* by an injected slowdown */
} ps_report;

enum { PS_REPORT_OF_A_PART = 0 }; /* which is not stored: the operator goes on */

typedef struct ps_graph {
    uint64_t hash;
    int32_t n_nodes;
    uint32_t n_reports;
    bool is_settled;     /* a whole evaluation showed which nodes report their end */
    int32_t waits_twice; /* the last operator where nodes that nobody computes are behind it; -1 for none */
    ps_node *nodes;
    const struct ggml_tensor **addresses; /* of the nodes when the graph was first seen; later another's */
    ps_report *reports;                   /* in the order in which they come */
    uint8_t *is_slowed;                   /* by node */
} ps_graph;

/* A thread of the engine's, on cache lines of its own.  While the thread computes, nobody else reads it. */
typedef struct ps_thread_slot {
    _Alignas(128) ps_ring ring;
    uint64_t arrival, earlier_arrival; /* the last ones at a barrier since the operator began; 0 for none */
    bool is_open;                      /* the ring holds the start of the operator under way */
} ps_thread_slot;

typedef struct ps_name {
    char text[PS_NAME_BYTES];
} ps_name;

struct ps_recorder {
    ps_recorder_kind kind;
    ps_state state;
    uint64_t hash;
    uint64_t launch_ticks;
    uint64_t previous_ticks;
    uint32_t n_asked;
    uint32_t n_ticked;
    bool follows_backends, only_asks;
    bool was_asked; /* since it was last looked at */
    int32_t current;      /* graph that is being computed; -1 when it could not be kept */
    uint8_t *may_be_last; /* by position: 1 where a known graph ends */
    const struct ggml_tensor **asked;

    ps_graph *graphs;
    int32_t n_graphs;
    uint64_t n_lost_graphs;

    ps_ring ring;
    ps_thread_slot *threads;
    int32_t n_threads;

    ps_event *stored;
    uint64_t n_stored, stored_capacity;
    ps_thread_event *thread_stored;
    uint64_t n_thread_stored, thread_stored_capacity;
    ps_expert_choice *choices;
    uint64_t n_choices, choices_capacity;
    int32_t *ids;
    uint64_t n_ids, ids_capacity;
    ps_split *splits;
    uint64_t n_splits, splits_capacity;
    uint64_t n_kept, n_thread_kept, n_choices_kept, n_ids_kept, n_splits_kept; /* what a clear leaves */

    char inject_op[PS_NAME_BYTES];
    double inject_ratio;
    double inject_extra_ticks;

    const uint8_t *group_ends;
    int32_t n_group_nodes;
    ps_event *groups; /* of the evaluation under way */
    uint32_t n_groups;

    ps_name backends[MAX_BACKENDS];
    int32_t n_backends;
    ps_name devices[MAX_DEVICES];
    int32_t n_devices;
};

static inline uint64_t ps_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static inline uint64_t ps_signature(const struct ggml_tensor *t) {
    uint64_t shape = (uint64_t)t->ne[0] ^ ((uint64_t)t->ne[1] << 20) ^ ((uint64_t)t->ne[2] << 40) ^
                     ((uint64_t)t->ne[3] << 52);
    return (uint64_t)(uintptr_t)t ^ (shape * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ ((uint64_t)t->op << 56);
}

/* recorder_graphs.c: the graph of what was asked, known again by `hash` or copied; -1 when it cannot be kept. */
int32_t ps_graphs_find(ps_recorder *r);
/* Which nodes report their end, seen by the first evaluation of a graph, in which so many did. */
void ps_graphs_settle(ps_graph *graph, uint32_t n_reports);
void ps_graphs_free(ps_recorder *r);

/* recorder_hooks.c: an evaluation is over; a node is asked for. */
void ps_hooks_end_evaluation(ps_recorder *r);
void ps_hooks_note(ps_recorder *r, const struct ggml_tensor *tensor);
/* The recorder that the interposed functions report to, and that it is no more. */
ps_recorder *ps_hooks_watched(void);
void ps_hooks_forget(const ps_recorder *r);

/* recorder_experts.c */
bool ps_experts_ask(ps_recorder *r, const struct ggml_tensor *tensor, bool ask);

/* recorder_threads.c */
bool ps_threads_open(ps_recorder *r, uint64_t capacity);
void ps_threads_close(ps_recorder *r);
/* `first`: place of the first event that was stored since the last drain. */
void ps_threads_drain(ps_recorder *r, uint64_t first);
void ps_threads_enter(ps_recorder *r, int ith, const struct ggml_tensor *tensor);

/* recorder_store.c: `items` with room for `n_more` behind the first `n`, moved where needed; NULL, and nothing is lost,
 * when memory is short. */
void *ps_store_room(void *items, uint64_t n, uint64_t n_more, uint64_t *capacity, size_t size);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
