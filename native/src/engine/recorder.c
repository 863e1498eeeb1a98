/* The callback recorder; see perfsuite/recorder.h for what it does and why.
 *
 * The hot path is ps_recorder_ask (about 900 calls a decode step) and ps_recorder_tick (about 500): no clock call, no
 * lock, no allocation.  A graph that was seen before is known again by a hash over its nodes' addresses, and over the
 * operators and shapes of some; only a new one is copied out.
 */
#include "perfsuite/recorder.h"

#include <stdio.h>
#include <string.h>

#include "ggml.h"
#include "perfsuite/clock.h"

/* N_SIGNED: a decode step streams the whole model through the caches, so looking into every tensor of the next graph
 * is a cache miss each.  Layers are alike: the batch, the context length and the outputs show in the first layers and
 * in the last node, and the rest of the graph is known by its addresses. */
enum { MAX_NODES = 65536, MAX_GRAPHS = 1024, MAX_THREADS = 256, N_SIGNED = 96 };

typedef enum ps_state { STATE_IDLE, STATE_ASKING, STATE_COMPUTING } ps_state;

typedef struct ps_graph {
    uint64_t hash;
    int32_t n_nodes;
    int32_t n_timed;
    ps_node *nodes;
    const struct ggml_tensor **addresses; /* of the nodes when the graph was first seen */
    uint8_t *slowed;                      /* by timed operator: 1 where a slowdown is injected */
} ps_graph;

struct ps_recorder {
    ps_recorder_kind kind;
    ps_state state;
    uint64_t hash;
    uint64_t launch_ticks;
    uint64_t previous_ticks;
    uint32_t n_asked;
    uint32_t n_ticked;
    int32_t current; /* graph that is being computed; -1 when it could not be kept */
    bool wants_first_entry;
    uint8_t *may_be_last; /* by position: 1 where a known graph ends */
    const struct ggml_tensor **asked;

    ps_graph *graphs;
    int32_t n_graphs;
    uint64_t n_lost_graphs;

    ps_ring ring;
    ps_ring *thread_rings;
    int32_t n_threads;

    ps_event *stored;
    uint64_t n_stored, stored_capacity;
    ps_thread_event *thread_stored;
    uint64_t n_thread_stored, thread_stored_capacity;
    uint64_t n_kept, n_thread_kept; /* what a clear leaves */

    char inject_op[PS_NAME_BYTES];
    double inject_ratio;
    double inject_extra_ticks;

    const uint8_t *group_ends;
    int32_t n_group_nodes;
    ps_event *groups; /* of the evaluation under way */
    uint32_t n_groups;
};

static ps_recorder *watched;

/* ---- life ------------------------------------------------------------------------------------------------------ */

static bool open_thread_rings(ps_recorder *r, uint64_t capacity) {
    r->thread_rings = (ps_ring *)calloc((size_t)r->n_threads, sizeof(ps_ring));
    for (int32_t i = 0; r->thread_rings && i < r->n_threads; i++) {
        if (!ps_ring_open(&r->thread_rings[i], capacity)) {
            return false;
        }
    }
    return r->thread_rings != NULL;
}

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
        opened = open_thread_rings(r, capacity);
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
    if (watched == r) {
        watched = NULL;
    }
    for (int32_t i = 0; i < r->n_graphs; i++) {
        free(r->graphs[i].nodes);
        free(r->graphs[i].addresses);
        free(r->graphs[i].slowed);
    }
    for (int32_t i = 0; r->thread_rings && i < r->n_threads; i++) {
        ps_ring_close(&r->thread_rings[i]);
    }
    free(r->thread_rings);
    ps_ring_close(&r->ring);
    free(r->graphs);
    free(r->may_be_last);
    free((void *)r->asked);
    free(r->stored);
    free(r->thread_stored);
    free(r->groups);
    free(r);
}

void ps_recorder_inject(ps_recorder *r, const char *op, double ratio, int64_t extra_ns, double ticks_per_ns) {
    snprintf(r->inject_op, sizeof(r->inject_op), "%s", op);
    r->inject_ratio = ratio;
    r->inject_extra_ticks = (double)extra_ns * ticks_per_ns;
}

/* ---- what a graph is ------------------------------------------------------------------------------------------- */

static bool is_empty(enum ggml_op op) {
    return op == GGML_OP_NONE || op == GGML_OP_VIEW || op == GGML_OP_RESHAPE || op == GGML_OP_PERMUTE ||
           op == GGML_OP_TRANSPOSE;
}

static int count_uses(const ps_recorder *r, const struct ggml_tensor *tensor) {
    int uses = 0;
    for (uint32_t i = 0; i < r->n_asked; i++) {
        for (int s = 0; s < GGML_MAX_SRC; s++) {
            uses += r->asked[i]->src[s] == tensor;
        }
    }
    return uses;
}

/* The CPU backend computes RMS_NORM and the MUL after it as one when nothing else reads the norm and all is F32. */
static bool is_fused_pair(const ps_recorder *r, uint32_t i) {
    if (i + 1 >= r->n_asked) {
        return false;
    }
    const struct ggml_tensor *norm = r->asked[i], *mul = r->asked[i + 1];
    if (norm->op != GGML_OP_RMS_NORM || mul->op != GGML_OP_MUL || !(mul->flags & GGML_TENSOR_FLAG_COMPUTE)) {
        return false;
    }
    if (mul->src[0] != norm && mul->src[1] != norm) {
        return false;
    }
    const struct ggml_tensor *weight = mul->src[0] == norm ? mul->src[1] : mul->src[0];
    bool plain = norm->src[0]->type == GGML_TYPE_F32 && mul->type == GGML_TYPE_F32 && weight->type == GGML_TYPE_F32;
    bool fits = ggml_are_same_shape(norm, mul) && weight->ne[0] == norm->ne[0] && weight->nb[0] == sizeof(float);
    return plain && fits && !norm->view_src && !(norm->flags & GGML_TENSOR_FLAG_OUTPUT) && count_uses(r, norm) == 1;
}

static void copy_tensor(ps_tensor *out, const struct ggml_tensor *tensor) {
    snprintf(out->name, sizeof(out->name), "%s", tensor->name);
    snprintf(out->type, sizeof(out->type), "%s", ggml_type_name(tensor->type));
    for (int d = 0; d < 4; d++) {
        out->ne[d] = tensor->ne[d];
        out->nb[d] = (int64_t)tensor->nb[d];
    }
}

static void copy_node(ps_node *out, const struct ggml_tensor *tensor) {
    copy_tensor(&out->tensor, tensor);
    snprintf(out->op, sizeof(out->op), "%s", ggml_op_desc(tensor));
    for (int s = 0; s < PS_MAX_SOURCES && tensor->src[s]; s++) {
        copy_tensor(&out->sources[out->n_sources++], tensor->src[s]);
    }
}

/* True where `op` names the node: its operator, or its tensor's name without the layer number. */
static bool is_named(const struct ggml_tensor *tensor, const char *op) {
    const char *dash = strrchr(tensor->name, '-');
    size_t length = dash ? (size_t)(dash - tensor->name) : strlen(tensor->name);
    return strcmp(op, ggml_op_desc(tensor)) == 0 ||
           (strlen(op) == length && strncmp(op, tensor->name, length) == 0);
}

static bool fill_graph(ps_recorder *r, ps_graph *graph) {
    graph->nodes = (ps_node *)calloc(r->n_asked, sizeof(ps_node));
    graph->addresses = (const struct ggml_tensor **)calloc(r->n_asked, sizeof(*graph->addresses));
    graph->slowed = (uint8_t *)calloc(r->n_asked, 1);
    if (!graph->nodes || !graph->addresses || !graph->slowed) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_asked; i++) {
        const struct ggml_tensor *tensor = r->asked[i];
        ps_node *node = &graph->nodes[i];
        copy_node(node, tensor);
        graph->addresses[i] = tensor;
        node->fused_into_previous =
            r->kind != PS_RECORDER_GROUPS && i > 0 && graph->nodes[i - 1].timed && is_fused_pair(r, i - 1);
        node->timed =
            !is_empty(tensor->op) && (tensor->flags & GGML_TENSOR_FLAG_COMPUTE) && !node->fused_into_previous;
        if (node->timed) {
            graph->slowed[graph->n_timed++] = r->inject_op[0] && is_named(tensor, r->inject_op);
        }
    }
    return true;
}

static int32_t add_graph(ps_recorder *r) {
    if (r->n_graphs == MAX_GRAPHS) {
        r->n_lost_graphs++;
        return -1;
    }
    ps_graph *graph = &r->graphs[r->n_graphs];
    graph->hash = r->hash;
    graph->n_nodes = (int32_t)r->n_asked;
    if (!fill_graph(r, graph)) {
        free(graph->nodes);
        free(graph->addresses);
        free(graph->slowed);
        memset(graph, 0, sizeof(*graph));
        r->n_lost_graphs++;
        return -1;
    }
    r->may_be_last[r->n_asked - 1] = 1;
    return r->n_graphs++;
}

static int32_t find_graph(ps_recorder *r) {
    for (int32_t i = r->n_graphs - 1; i >= 0; i--) {
        if (r->graphs[i].hash == r->hash && r->graphs[i].n_nodes == (int32_t)r->n_asked) {
            return i;
        }
    }
    return add_graph(r);
}

/* ---- the hooks ------------------------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static inline uint64_t signature(const struct ggml_tensor *t) {
    uint64_t shape = (uint64_t)t->ne[0] ^ ((uint64_t)t->ne[1] << 20) ^ ((uint64_t)t->ne[2] << 40) ^
                     ((uint64_t)t->ne[3] << 52);
    return (uint64_t)(uintptr_t)t ^ (shape * UINT64_C(0xC2B2AE3D27D4EB4F)) ^ ((uint64_t)t->op << 56);
}

static void begin_asking(ps_recorder *r) {
    r->state = STATE_ASKING;
    r->n_asked = 0;
    r->hash = UINT64_C(0x243F6A8885A308D3);
    r->launch_ticks = ps_ticks();
}

static void begin_computing(ps_recorder *r) {
    r->state = STATE_COMPUTING;
    r->n_ticked = 0;
    r->current = -1;
    if (r->n_asked <= MAX_NODES) {
        r->hash = mix(r->hash, signature(r->asked[r->n_asked - 1]));
        r->current = find_graph(r);
    } else {
        r->n_lost_graphs++;
    }
    r->wants_first_entry = false;
    if (r->current >= 0) {
        ps_ring_push(&r->ring, r->launch_ticks, (uint32_t)r->current, 0);
    }
    r->previous_ticks = r->launch_ticks;
}

void ps_recorder_set_groups(ps_recorder *r, const uint8_t *ends, int32_t n_nodes) {
    r->group_ends = ends;
    r->n_group_nodes = n_nodes;
}

static bool ask_for_group(ps_recorder *r, struct ggml_tensor *tensor, bool ask) {
    if (!ask) { /* the group whose last node was asked for last is computed */
        if (r->n_asked <= MAX_NODES) {
            r->groups[r->n_groups++] = (ps_event){.ticks = ps_ticks(), .index = r->n_asked};
        }
        return true;
    }
    if (r->state != STATE_ASKING) {
        begin_asking(r);
        r->n_groups = 0;
    }
    uint32_t position = r->n_asked++;
    if (position < MAX_NODES) {
        r->asked[position] = tensor;
        r->hash = mix(r->hash, signature(tensor));
    }
    return position >= (uint32_t)r->n_group_nodes || r->group_ends[position];
}

void ps_recorder_end_evaluation(ps_recorder *r) {
    if (r->kind != PS_RECORDER_GROUPS || r->state != STATE_ASKING) {
        return;
    }
    begin_computing(r);
    for (uint32_t i = 0; r->current >= 0 && i < r->n_groups; i++) {
        ps_ring_push(&r->ring, r->groups[i].ticks, (uint32_t)r->current, r->groups[i].index);
    }
    r->state = STATE_IDLE;
}

bool ps_recorder_ask(struct ggml_tensor *tensor, bool ask, void *recorder) {
    ps_recorder *r = (ps_recorder *)recorder;
    if (r->kind == PS_RECORDER_GROUPS) {
        return ask_for_group(r, tensor, ask);
    }
    if (!ask) { /* only after an answer of true */
        ps_ring_push(&r->ring, ps_ticks(), 0, 1);
        return true;
    }
    if (r->kind == PS_RECORDER_CB_EVAL) {
        return true;
    }
    if (r->state != STATE_ASKING) {
        begin_asking(r);
    }
    uint32_t position = r->n_asked++;
    if (position >= MAX_NODES) {
        return false;
    }
    r->asked[position] = tensor;
    r->hash = mix(r->hash, position < N_SIGNED ? signature(tensor) : (uint64_t)(uintptr_t)tensor);
    if (r->may_be_last[position]) {
        r->launch_ticks = ps_ticks();
        r->wants_first_entry = true;
    }
    return false;
}

static uint64_t busy_wait(const ps_recorder *r, uint64_t now) {
    uint64_t wait = (uint64_t)((double)(now - r->previous_ticks) * r->inject_ratio + r->inject_extra_ticks);
    uint64_t until = now + wait;
    while ((now = ps_ticks()) < until) {
    }
    return now;
}

bool ps_recorder_tick(void *recorder) {
    ps_recorder *r = (ps_recorder *)recorder;
    uint64_t now = ps_ticks();
    if (r->state == STATE_ASKING) {
        begin_computing(r);
    }
    uint32_t index = r->n_ticked++;
    if (r->current >= 0) {
        const ps_graph *graph = &r->graphs[r->current];
        if (r->inject_op[0] && index < (uint32_t)graph->n_timed && graph->slowed[index]) {
            now = busy_wait(r, now);
        }
        ps_ring_push(&r->ring, now, (uint32_t)r->current, index + 1);
    }
    r->previous_ticks = now;
    return false;
}

void ps_recorder_watch_entries(ps_recorder *recorder) { watched = recorder; }

/* Called on every thread at the entry of every operator that is not computed as a fused pair. */
void ps_recorder_entry(int ith, const struct ggml_tensor *tensor) {
    ps_recorder *r = watched;
    if (!r) {
        return;
    }
    if (r->kind == PS_RECORDER_PRELOAD) {
        if (ith == 0 && r->state == STATE_ASKING) {
            begin_computing(r);
        }
        if (ith < r->n_threads) {
            uint64_t address = (uint64_t)(uintptr_t)tensor;
            ps_ring_push(&r->thread_rings[ith], ps_ticks(), (uint32_t)address, (uint32_t)(address >> 32));
        }
    } else if (ith == 0 && r->wants_first_entry) {
        r->wants_first_entry = false;
        ps_ring_push(&r->ring, ps_ticks(), 0, PS_EVENT_FIRST_START);
    }
}

/* ---- the store ------------------------------------------------------------------------------------------------- */

static void *grown(void *items, uint64_t n, uint64_t *capacity, size_t size) {
    if (n < *capacity) {
        return items;
    }
    uint64_t larger = *capacity ? *capacity * 2 : 4096;
    void *moved = realloc(items, larger * size);
    if (moved) {
        *capacity = larger;
    }
    return moved;
}

static void store(ps_recorder *r, const ps_event *event) {
    ps_event *moved = (ps_event *)grown(r->stored, r->n_stored, &r->stored_capacity, sizeof(ps_event));
    if (!moved) {
        r->ring.dropped++;
        return;
    }
    r->stored = moved;
    r->stored[r->n_stored++] = *event;
}

static void store_thread(ps_recorder *r, uint64_t ticks, uint32_t graph, uint32_t node, uint32_t thread) {
    ps_thread_event *moved = (ps_thread_event *)grown(r->thread_stored, r->n_thread_stored, &r->thread_stored_capacity,
                                                      sizeof(ps_thread_event));
    if (!moved) {
        r->ring.dropped++;
        return;
    }
    r->thread_stored = moved;
    r->thread_stored[r->n_thread_stored++] =
        (ps_thread_event){.ticks = ticks, .graph = graph, .node = node, .thread = thread};
}

static int32_t node_of(const ps_graph *graph, uint64_t address, int32_t from) {
    for (int32_t i = from; i < graph->n_nodes; i++) {
        if ((uint64_t)(uintptr_t)graph->addresses[i] == address) {
            return i;
        }
    }
    return -1;
}

/* The place of the first launch at `from` or after it among the stored events; n_stored when there is none. */
static uint64_t launch_from(const ps_recorder *r, uint64_t from) {
    while (from < r->n_stored && r->stored[from].index != 0) {
        from++;
    }
    return from;
}

/* Operators of a thread come in the order of the graph, so a search that starts behind the last one finds it at once;
 * a node that lies before it opens the next of the graphs that were launched since the last drain. */
static void drain_thread(ps_recorder *r, int32_t thread, uint64_t first) {
    uint64_t at = launch_from(r, first);
    int32_t next = 0;
    ps_event event;
    while (ps_ring_pop(&r->thread_rings[thread], &event)) {
        uint64_t address = (uint64_t)event.graph | ((uint64_t)event.index << 32);
        int32_t node = -1;
        while (at < r->n_stored && (node = node_of(&r->graphs[r->stored[at].graph], address, next)) < 0) {
            at = launch_from(r, at + 1);
            next = 0;
        }
        if (node < 0) {
            r->ring.dropped++;
            continue;
        }
        store_thread(r, event.ticks, r->stored[at].graph, (uint32_t)node, (uint32_t)thread);
        next = node + 1;
    }
}

void ps_recorder_drain(ps_recorder *r) {
    uint64_t first = r->n_stored;
    ps_event event;
    while (ps_ring_pop(&r->ring, &event)) {
        store(r, &event);
    }
    r->state = STATE_IDLE;
    for (int32_t t = 0; r->thread_rings && t < r->n_threads; t++) {
        drain_thread(r, t, first);
    }
}

bool ps_recorder_is_half_full(const ps_recorder *r) {
    bool is_half_full = ps_ring_is_half_full(&r->ring);
    for (int32_t t = 0; r->thread_rings && t < r->n_threads; t++) {
        is_half_full = is_half_full || ps_ring_is_half_full(&r->thread_rings[t]);
    }
    return is_half_full;
}

void ps_recorder_keep(ps_recorder *r) {
    ps_recorder_drain(r);
    r->n_kept = r->n_stored;
    r->n_thread_kept = r->n_thread_stored;
}

void ps_recorder_clear(ps_recorder *r) {
    ps_recorder_drain(r);
    r->n_stored = r->n_kept;
    r->n_thread_stored = r->n_thread_kept;
}

uint64_t ps_recorder_dropped(const ps_recorder *r) {
    uint64_t dropped = r->ring.dropped + r->n_lost_graphs;
    for (int32_t i = 0; r->thread_rings && i < r->n_threads; i++) {
        dropped += r->thread_rings[i].dropped;
    }
    return dropped;
}

int32_t ps_recorder_n_graphs(const ps_recorder *r) { return r->n_graphs; }

const ps_node *ps_recorder_nodes(const ps_recorder *r, int32_t graph, int32_t *n_nodes) {
    if (graph < 0 || graph >= r->n_graphs) {
        *n_nodes = 0;
        return NULL;
    }
    *n_nodes = r->graphs[graph].n_nodes;
    return r->graphs[graph].nodes;
}

const ps_event *ps_recorder_events(const ps_recorder *r, uint64_t *n_events) {
    *n_events = r->n_stored;
    return r->stored;
}

const ps_thread_event *ps_recorder_thread_events(const ps_recorder *r, uint64_t *n_events) {
    *n_events = r->n_thread_stored;
    return r->thread_stored;
}
