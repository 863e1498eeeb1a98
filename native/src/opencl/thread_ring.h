/* One ring of commands for each thread: the thread puts them in, the drain takes them out. */
#ifndef PERFSUITE_OPENCL_THREAD_RING_H
#define PERFSUITE_OPENCL_THREAD_RING_H

#include "layer.h"
#include "objects.h"

enum { PS_CL_CLOCK_ENTRY = 0 }; /* the `type` of an entry that is a marker for the device's clock */

typedef struct ps_cl_entry {
    ps_cl_command command;
    cl_event event; /* NULL: the record is as it will be */
    ps_cl_queue_state *queue;
} ps_cl_entry;

typedef struct ps_cl_thread {
    struct ps_cl_thread *next;
    ps_cl_entry *entries;
    uint64_t mask;
    uint32_t id; /* gettid */
    _Atomic int state;
    /* The producer's. */
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t n_lost; /* since the thread began */
    uint64_t seen_tail;
    /* The drain's. */
    _Alignas(64) _Atomic uint64_t tail;
    uint64_t until;
    uint64_t n_lost_written;
} ps_cl_thread;

extern __thread ps_cl_thread *ps_cl_mine;
ps_cl_thread *ps_cl_thread_open(void);

/* The calling thread's ring; NULL without memory. */
static inline ps_cl_thread *ps_cl_this_thread(void) {
    ps_cl_thread *mine = ps_cl_mine;
    return mine ? mine : ps_cl_thread_open();
}

/* The slot to be filled next; NULL where the ring is full. */
static inline ps_cl_entry *ps_cl_ring_slot(ps_cl_thread *thread) {
    uint64_t head = atomic_load_explicit(&thread->head, memory_order_relaxed);
    if (head - thread->seen_tail > thread->mask) {
        thread->seen_tail = atomic_load_explicit(&thread->tail, memory_order_acquire);
        if (head - thread->seen_tail > thread->mask) {
            return NULL;
        }
    }
    return &thread->entries[head & thread->mask];
}

static inline uint64_t ps_cl_ring_depth(const ps_cl_thread *thread) {
    return atomic_load_explicit(&thread->head, memory_order_relaxed) -
           atomic_load_explicit(&thread->tail, memory_order_relaxed);
}

void ps_cl_drain_kick(void);

/* Hands over the slot; wakes the drain where half the ring waits, looked at every quarter. */
static inline void ps_cl_ring_publish(ps_cl_thread *thread) {
    uint64_t head = atomic_load_explicit(&thread->head, memory_order_relaxed) + 1;
    atomic_store_explicit(&thread->head, head, memory_order_release);
    if ((head & (thread->mask >> 2)) == 0 && ps_cl_ring_depth(thread) > thread->mask >> 1) {
        ps_cl_drain_kick();
    }
}

static inline void ps_cl_count_lost(ps_cl_thread *thread) {
    uint64_t n = atomic_load_explicit(&thread->n_lost, memory_order_relaxed);
    atomic_store_explicit(&thread->n_lost, n + 1, memory_order_relaxed);
}

/* All threads that ever had a ring; nodes are used again, never freed. */
ps_cl_thread *ps_cl_thread_first(void);
/* Lets a later thread have the ring of one that ended, once it is empty and its loss is written. */
void ps_cl_thread_recycle(ps_cl_thread *thread);
void ps_cl_threads_init(uint64_t capacity);

/* Commands that a thread could not even open a ring for. */
extern _Atomic uint64_t ps_cl_n_ringless;

/* The number of the next command. */
extern _Atomic uint64_t ps_cl_next_sequence;

#endif
