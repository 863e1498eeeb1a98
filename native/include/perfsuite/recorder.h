/* The recorders: which operators a llama.cpp context computed, and when each ended.
 *
 * Two public hooks of llama.cpp are enough.  `cb_eval` names every node of a graph before the graph is computed (the
 * recorder answers false, so that nothing is split or synchronised).  The abort callback is called on thread 0 after
 * each node that the CPU backend computes, before the barrier.  The recorder pairs the two.
 *
 * The library also stands before a few functions of ggml (src/engine/entry.c).  The entries of operators give the start
 * of the first one, and with the arrivals at barriers, in the `preload` mode, the start and the own end of every operator
 * on every thread.  The calls that hand a part of the graph to a backend give the splits.
 *
 * The `experts` mode is that of the callback with one answer of true: behind each router, whose choice is then read.  It
 * cuts the graph there, so an evaluation of the engine's is several graphs here, one for each piece.
 */
#ifndef PERFSUITE_RECORDER_H
#define PERFSUITE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "perfsuite/clock.h"
#include "perfsuite/ring.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_tensor;
struct ggml_compute_params;

enum { PS_MAX_SOURCES = 10, PS_NAME_BYTES = 64, PS_OP_BYTES = 32, PS_TYPE_BYTES = 16 };

/* What is kept of a tensor: its ggml name and type, its four dimensions, the bytes between its elements, and the address
 * of the tensor whose memory it is (its own, or that of what it is a view of) when the graph was first seen. */
typedef struct ps_tensor {
    char name[PS_NAME_BYTES];
    char type[PS_TYPE_BYTES];
    int64_t ne[4];
    int64_t nb[4];
    uint64_t root;
} ps_tensor;

/* A node of a graph; `timed` is 1 where the CPU backend reports its end, 0 for empty, uncomputed and fused-away nodes. */
typedef struct ps_node {
    ps_tensor tensor;
    char op[PS_OP_BYTES]; /* as ggml_op_desc spells it: MUL_MAT, SWIGLU, ... */
    int32_t timed;
    int32_t fused_into_previous;
    int32_t n_sources;
    uint32_t refused_by; /* bits 1 << device of those that cannot compute it (the `splits` recorder) */
    ps_tensor sources[PS_MAX_SOURCES];
} ps_node;

/* An operator on one thread (the `preload` recorder), from its start to its last arrival at a barrier; 0: none seen. */
typedef struct ps_thread_event {
    uint64_t ticks;
    uint64_t end_ticks;
    uint32_t graph;
    uint32_t node; /* of a fused pair the first */
    uint32_t thread;
    uint32_t reserved;
} ps_thread_event;

/* The experts that a layer's router chose, `n_used` for each of `n_tokens` (the `experts` recorder). */
typedef struct ps_expert_choice {
    uint64_t ticks;    /* when they were read */
    uint64_t first_id; /* place of the first token's first among all ids */
    int32_t layer;
    int32_t n_tokens;
    int32_t n_used;
    int32_t n_experts; /* that the router could choose from; 0: not known */
} ps_expert_choice;

/* A part of the graph that was given to one backend (the `splits` recorder). */
typedef struct ps_split {
    uint64_t launch_ticks;
    uint64_t return_ticks; /* of the call; a device may still compute */
    int32_t graph;
    int32_t backend;
} ps_split;

typedef enum ps_recorder_kind {
    PS_RECORDER_NONE = 0,
    PS_RECORDER_CALLBACK = 1, /* ends of operators on thread 0 */
    PS_RECORDER_PRELOAD = 2,  /* starts and ends of operators on each thread */
    PS_RECORDER_CB_EVAL = 3,  /* answers true for each node: the naive way, kept for comparison */
    PS_RECORDER_GROUPS = 4,   /* ends of groups of nodes, each computed and waited for by itself, on any backend */
    PS_RECORDER_EXPERTS = 5,  /* ends of operators on thread 0, and the experts that each layer's router chose */
    PS_RECORDER_SPLITS = 6,   /* which backend is given which nodes; neither of the two hooks is wanted */
} ps_recorder_kind;

typedef struct ps_recorder ps_recorder;

/* Returns NULL when memory is short. `capacity` is the number of events that fit between two drains. */
ps_recorder *ps_recorder_open(ps_recorder_kind kind, uint64_t capacity, int32_t n_threads);
void ps_recorder_close(ps_recorder *recorder);

/* Slows every operator of `op` (as ggml_op_desc spells it, or a tensor's name without its layer number) by a busy wait
 * of `ratio` times its own duration plus `extra_ns`.  For tests and for certifying a device only. */
void ps_recorder_inject(ps_recorder *recorder, const char *op, double ratio, int64_t extra_ns, double ticks_per_ns);

/* The two hooks, with the signatures that llama.cpp wants. */
bool ps_recorder_ask(struct ggml_tensor *tensor, bool ask, void *recorder);
bool ps_recorder_tick(void *recorder);
/* Whether a node was asked for since this was last called: an evaluation in which none was has computed nothing. */
bool ps_recorder_was_asked(ps_recorder *recorder);

/* Which nodes of the evaluations to come end a group (the `groups` recorder), by their place among all nodes of an
 * evaluation; those from `n_nodes` on end one each.  `ends` is kept by the caller. */
void ps_recorder_set_groups(ps_recorder *recorder, const uint8_t *ends, int32_t n_nodes);
/* Tells the `groups` recorder, to which no graph looks like the last one, that an evaluation is over.  Its events are
 * then the launch of the graph of all nodes and the end of each group, with the index of the group's last node + 1. */
void ps_recorder_end_evaluation(ps_recorder *recorder);

/* Which recorder the interposed functions report to; NULL for none.  One at a time in a process. */
void ps_recorder_watch_entries(ps_recorder *recorder);

/* Whether the CPU backends that compute a graph from now on report to the recorder: those of somebody else's contexts,
 * which it cannot ask for that itself.  Does nothing without a recorder, or for one that hears nothing from a backend. */
void ps_recorder_follow_backends(ps_recorder *recorder, bool is_wanted);

/* Lets no backend that it follows compute further than the first node: a graph is kept, and its evaluation fails. */
void ps_recorder_only_ask(ps_recorder *recorder);

/* Moves what the hooks have put into the rings to the recorder's store; call it while the engine computes nothing. */
void ps_recorder_drain(ps_recorder *recorder);
/* Whether a drain is due before the next evaluation. */
bool ps_recorder_is_half_full(const ps_recorder *recorder);
/* Drains, and makes what is stored by now safe from a clear. */
void ps_recorder_keep(ps_recorder *recorder);
/* Forgets the events since the last keep; graphs stay. */
void ps_recorder_clear(ps_recorder *recorder);

/* One instant on the clock of events and on the monotonic one; two of them tell when an event was. */
void ps_recorder_clock(ps_clock_point *now);

/* Copies a graph that nobody has computed; false when it cannot be kept. */
bool ps_recorder_add_graph(ps_recorder *recorder, struct ggml_tensor *const *nodes, int32_t n_nodes);

uint64_t ps_recorder_dropped(const ps_recorder *recorder);
int32_t ps_recorder_n_graphs(const ps_recorder *recorder);
const ps_node *ps_recorder_nodes(const ps_recorder *recorder, int32_t graph, int32_t *n_nodes);
const ps_event *ps_recorder_events(const ps_recorder *recorder, uint64_t *n_events);
const ps_thread_event *ps_recorder_thread_events(const ps_recorder *recorder, uint64_t *n_events);
const ps_expert_choice *ps_recorder_expert_choices(const ps_recorder *recorder, uint64_t *n_choices);
const int32_t *ps_recorder_expert_ids(const ps_recorder *recorder);
const ps_split *ps_recorder_splits(const ps_recorder *recorder, uint64_t *n_splits);
/* NULL where there is no such one. */
const char *ps_recorder_backend_name(const ps_recorder *recorder, int32_t backend);
const char *ps_recorder_device_name(const ps_recorder *recorder, int32_t device);

#ifdef __cplusplus
}
#endif

#endif
