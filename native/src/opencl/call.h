/* One call of the program that enqueues a command: before the driver is asked, and after it. */
#ifndef PERFSUITE_OPENCL_CALL_H
#define PERFSUITE_OPENCL_CALL_H

#include "objects.h"
#include "thread_ring.h"

/* A call that blocked wakes the drain where so many commands wait for it: fewer are not worth the wake-up. */
enum { PS_CL_KICK_DEPTH = 64 };

typedef struct ps_cl_call {
    ps_cl_thread *thread; /* NULL: the call is not recorded */
    ps_cl_queue_state *queue;
    cl_event *callers;
    cl_event own;
    cl_event *taken; /* what the driver is given */
    uint64_t sequence;
    uint32_t name;
    uint16_t flags;
    bool has_room;
    int64_t start_ns, end_ns;
} ps_cl_call;

static inline bool ps_cl_open_call(ps_cl_call *c, cl_command_queue queue, cl_uint n_waits, cl_event *event) {
    c->thread = NULL;
    c->taken = event;
    if (atomic_load_explicit(&ps_cl_gate, memory_order_relaxed)) {
        return false;
    }
    c->queue = ps_cl_queue_of(queue);
    if (!c->queue) {
        return false;
    }
    ps_cl_thread *thread = ps_cl_this_thread();
    if (!thread) {
        atomic_fetch_add_explicit(&ps_cl_n_ringless, 1, memory_order_relaxed);
        return false;
    }
    c->thread = thread;
    c->callers = event;
    c->own = NULL;
    c->flags = (uint16_t)((event ? PS_CL_CALLERS_EVENT : 0) | (n_waits ? PS_CL_WAITS : 0));
    c->has_room = ps_cl_ring_slot(thread) != NULL;
    if (!event && c->has_room) {
        c->taken = &c->own;
    }
    c->sequence = atomic_fetch_add_explicit(&ps_cl_next_sequence, 1, memory_order_relaxed);
    c->start_ns = ps_now_ns();
    return true;
}

/* Gives the number back, unless another thread has taken the next one meanwhile. */
static inline void ps_cl_refuse_call(ps_cl_call *c) {
    uint64_t next = c->sequence + 1;
    atomic_compare_exchange_strong_explicit(&ps_cl_next_sequence, &next, c->sequence, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* The entry to be filled and published; NULL where the command is lost.  A ring that had room may have none now: the
 * driver may have run a callback that enqueued on this thread. */
static inline ps_cl_entry *ps_cl_close_call(ps_cl_call *c, ps_cl_command_type type) {
    ps_cl_entry *entry = c->has_room ? ps_cl_ring_slot(c->thread) : NULL;
    cl_event event = *(c->callers ? c->callers : &c->own);
    if (!entry || (c->callers && event && !ps_cl_event_hold(event))) {
        if (c->own) {
            ps_cl_below.clReleaseEvent(c->own);
        }
        ps_cl_count_lost(c->thread);
        return NULL;
    }
    c->flags |= event ? 0 : PS_CL_NO_PROFILE;
    entry->event = event;
    entry->queue = c->queue;
    ps_cl_command *command = &entry->command;
    *command = (ps_cl_command){.prefix = {PS_CL_COMMAND, sizeof(*command)},
                               .sequence = c->sequence,
                               .host_start_ns = c->start_ns,
                               .host_end_ns = c->end_ns,
                               .queue = c->queue->id,
                               .thread = c->thread->id,
                               .type = (uint16_t)type,
                               .flags = c->flags,
                               .global = {1, 1, 1}};
    return entry;
}

#endif
