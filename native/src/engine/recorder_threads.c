/* The preload recorder: when each thread begins each operator, and when it has done its part of it.
 *
 * A thread's ring holds the starts, by the tensor's address, and before the next start the end, marked by an address
 * that no tensor has.  The end is the last arrival at a barrier, for there are barriers inside of operators too.
 */
#include <string.h>

#include "interposed.h"
#include "perfsuite/clock.h"
#include "recorder_state.h"

enum { END_MARK = 1 }; /* where the low half of an address would be; tensors lie at even ones */

static _Thread_local int number = -1; /* of the calling thread, since it began an operator */

bool ps_threads_open(ps_recorder *r, uint64_t capacity) {
    size_t bytes = (size_t)r->n_threads * sizeof(*r->threads);
    r->threads = (ps_thread_slot *)aligned_alloc(_Alignof(ps_thread_slot), bytes);
    if (!r->threads) {
        return false;
    }
    memset(r->threads, 0, bytes);
    for (int32_t i = 0; i < r->n_threads; i++) {
        if (!ps_ring_open(&r->threads[i].ring, capacity)) {
            return false;
        }
    }
    return true;
}

void ps_threads_close(ps_recorder *r) {
    for (int32_t i = 0; r->threads && i < r->n_threads; i++) {
        ps_ring_close(&r->threads[i].ring);
    }
    free(r->threads);
}

/* ---- on the engine's threads ----------------------------------------------------------------------------------- */

static uint32_t since_earlier(const ps_thread_slot *slot) {
    uint64_t ticks = slot->earlier_arrival ? slot->arrival - slot->earlier_arrival : 0;
    return ticks > UINT32_MAX ? 0 : (uint32_t)ticks;
}

static void push_end(ps_thread_slot *slot) {
    if (slot->is_open && slot->arrival) {
        ps_ring_push(&slot->ring, slot->arrival, END_MARK, since_earlier(slot));
    }
    slot->is_open = false;
    slot->arrival = slot->earlier_arrival = 0;
}

void ps_threads_enter(ps_recorder *r, int ith, const struct ggml_tensor *tensor) {
    number = ith;
    if (ith >= r->n_threads) {
        return;
    }
    ps_thread_slot *slot = &r->threads[ith];
    push_end(slot);
    uint64_t address = (uint64_t)(uintptr_t)tensor, head = slot->ring.head;
    ps_ring_push(&slot->ring, ps_ticks(), (uint32_t)address, (uint32_t)(address >> 32));
    slot->is_open = slot->ring.head != head; /* the end of a start that found no room would be another's */
}

void ps_recorder_arrival(void) {
    ps_recorder *r = ps_hooks_watched();
    if (r && number >= 0 && number < r->n_threads) {
        ps_thread_slot *slot = &r->threads[number];
        slot->earlier_arrival = slot->arrival;
        slot->arrival = ps_ticks();
    }
}

/* ---- on the driver's thread, while the engine rests ------------------------------------------------------------- */

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

static ps_thread_event *store_start(ps_recorder *r, uint64_t ticks, uint32_t graph, uint32_t node, uint32_t thread) {
    void *moved = ps_store_room(r->thread_stored, r->n_thread_stored, 1, &r->thread_stored_capacity,
                                sizeof(ps_thread_event));
    if (!moved) {
        r->ring.dropped++;
        return NULL;
    }
    r->thread_stored = (ps_thread_event *)moved;
    ps_thread_event *event = &r->thread_stored[r->n_thread_stored++];
    *event = (ps_thread_event){.ticks = ticks, .graph = graph, .node = node, .thread = thread};
    return event;
}

static void store_end(const ps_recorder *r, ps_thread_event *started, uint64_t ticks, uint32_t since_earlier) {
    bool is_waited_for = r->graphs[started->graph].waits_twice == (int32_t)started->node;
    started->end_ticks = is_waited_for ? ticks - since_earlier : ticks;
}

/* The operator that is under way on a thread with a node's start: the node's own, the one that it is a part of, or NULL
 * where it computes nothing. */
static ps_thread_event *begun(ps_recorder *r, ps_thread_event *before, const ps_event *start, uint32_t graph,
                              int32_t number, int32_t thread) {
    const ps_node *node = &r->graphs[graph].nodes[number];
    if (node->fused_into_previous) {
        return before;
    }
    return node->timed ? store_start(r, start->ticks, graph, (uint32_t)number, (uint32_t)thread) : NULL;
}

/* Operators of a thread come in the order of the graph, so a search that starts behind the last one finds it at once;
 * a node that lies before it opens the next of the graphs that were launched since the last drain. */
static void drain_thread(ps_recorder *r, int32_t thread, uint64_t first) {
    uint64_t at = launch_from(r, first);
    int32_t next = 0;
    ps_thread_event *started = NULL;
    ps_event event;
    push_end(&r->threads[thread]);
    while (ps_ring_pop(&r->threads[thread].ring, &event)) {
        if (event.graph == END_MARK) {
            if (started) {
                store_end(r, started, event.ticks, event.index);
            }
            continue;
        }
        uint64_t address = (uint64_t)event.graph | ((uint64_t)event.index << 32);
        int32_t node = -1;
        while (at < r->n_stored && (node = node_of(&r->graphs[r->stored[at].graph], address, next)) < 0) {
            at = launch_from(r, at + 1);
            next = 0;
        }
        if (node < 0) {
            started = NULL;
            r->ring.dropped++;
            continue;
        }
        next = node + 1;
        started = begun(r, started, &event, r->stored[at].graph, node, thread);
    }
}

void ps_threads_drain(ps_recorder *r, uint64_t first) {
    for (int32_t t = 0; r->threads && t < r->n_threads; t++) {
        drain_thread(r, t, first);
    }
}

const ps_thread_event *ps_recorder_thread_events(const ps_recorder *r, uint64_t *n_events) {
    *n_events = r->n_thread_stored;
    return r->thread_stored;
}
