#define _GNU_SOURCE
#include "thread_ring.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATE_USED, STATE_ENDED, STATE_FREE };

__thread ps_cl_thread *ps_cl_mine;
_Atomic uint64_t ps_cl_n_ringless;
_Atomic uint64_t ps_cl_next_sequence;

static _Atomic(ps_cl_thread *) first;
static pthread_key_t ended_key;
static uint64_t capacity;

static void thread_ended(void *context) {
    ps_cl_thread *thread = (ps_cl_thread *)context;
    if (ps_cl_mine == thread) {
        ps_cl_mine = NULL; /* a later destructor that enqueues opens another */
    }
    atomic_store_explicit(&thread->state, STATE_ENDED, memory_order_release);
}

void ps_cl_threads_init(uint64_t asked) {
    uint64_t size = 16;
    while (size < asked && size < (UINT64_C(1) << 24)) {
        size <<= 1;
    }
    capacity = size;
    pthread_key_create(&ended_key, thread_ended);
}

static ps_cl_thread *claim_free(void) {
    for (ps_cl_thread *thread = ps_cl_thread_first(); thread; thread = thread->next) {
        int expected = STATE_FREE;
        if (atomic_compare_exchange_strong_explicit(&thread->state, &expected, STATE_USED, memory_order_acquire,
                                                    memory_order_relaxed)) {
            return thread;
        }
    }
    return NULL;
}

static ps_cl_thread *make_thread(void) {
    ps_cl_thread *thread = (ps_cl_thread *)aligned_alloc(64, sizeof(*thread));
    if (!thread) {
        return NULL;
    }
    memset(thread, 0, sizeof(*thread));
    thread->mask = capacity - 1;
    thread->entries = (ps_cl_entry *)calloc(capacity, sizeof(*thread->entries));
    if (!thread->entries) {
        free(thread);
        return NULL;
    }
    thread->next = atomic_load_explicit(&first, memory_order_relaxed);
    return thread;
}

static void link_thread(ps_cl_thread *thread) {
    while (!atomic_compare_exchange_weak_explicit(&first, &thread->next, thread, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

ps_cl_thread *ps_cl_thread_open(void) {
    ps_cl_thread *thread = claim_free();
    bool is_new = !thread;
    if (is_new && !(thread = make_thread())) {
        return NULL;
    }
    thread->id = (uint32_t)syscall(SYS_gettid);
    if (is_new) {
        link_thread(thread);
    }
    pthread_setspecific(ended_key, thread);
    ps_cl_mine = thread;
    return thread;
}

ps_cl_thread *ps_cl_thread_first(void) {
    return atomic_load_explicit(&first, memory_order_acquire);
}

void ps_cl_thread_recycle(ps_cl_thread *thread) {
    if (atomic_load_explicit(&thread->state, memory_order_acquire) == STATE_ENDED &&
        atomic_load_explicit(&thread->head, memory_order_acquire) ==
            atomic_load_explicit(&thread->tail, memory_order_relaxed) &&
        atomic_load_explicit(&thread->n_lost, memory_order_relaxed) == thread->n_lost_written) {
        atomic_store_explicit(&thread->state, STATE_FREE, memory_order_release);
    }
}
