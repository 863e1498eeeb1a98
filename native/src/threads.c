#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "perfsuite/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "perfsuite/clock.h"

/* About 20 to 100 us of spinning, more than a short operator takes; beyond that, the peer may need this processor. */
enum { PS_SPINS = 2048 };

static inline void ps_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void ps_barrier_open(ps_barrier *barrier, int n_threads, int64_t limit_ns) {
    *barrier = (ps_barrier){.n_threads = n_threads, .limit_ns = limit_ns};
}

void ps_barrier_break(ps_barrier *barrier) {
    __atomic_store_n(&barrier->broken, 1, __ATOMIC_RELEASE);
}

static int ps_is_broken(const ps_barrier *barrier) {
    return __atomic_load_n(&barrier->broken, __ATOMIC_ACQUIRE);
}

static int ps_has_moved_on(const ps_barrier *barrier, uint32_t generation) {
    return __atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE) != generation;
}

/* The wait of a thread that spinning did not help. */
static int ps_wait_yielding(ps_barrier *barrier, uint32_t generation) {
    int64_t deadline_ns = ps_now_ns() + barrier->limit_ns;
    while (!ps_has_moved_on(barrier, generation)) {
        if (ps_is_broken(barrier)) {
            return PS_TIMEOUT;
        }
        if (ps_now_ns() >= deadline_ns) {
            ps_barrier_break(barrier);
            return PS_TIMEOUT;
        }
        sched_yield();
    }
    return PS_OK;
}

int ps_barrier_wait(ps_barrier *barrier) {
    if (ps_is_broken(barrier)) {
        return PS_TIMEOUT;
    }
    uint32_t generation = __atomic_load_n(&barrier->generation, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == barrier->n_threads) {
        __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&barrier->generation, generation + 1, __ATOMIC_RELEASE);
        return PS_OK;
    }
    for (int i = 0; i < PS_SPINS; i++) {
        if (ps_has_moved_on(barrier, generation)) {
            return PS_OK;
        }
        ps_relax();
    }
    return ps_wait_yielding(barrier, generation);
}

typedef struct ps_recruit {
    ps_member member;
    ps_task task;
    void *context;
    pthread_t handle;
    int is_started;
    int status;
} ps_recruit;

/* Pin a thread of the team to the processor whose turn it is. */
static int ps_pin(pthread_t handle, int thread, const cpu_set_t *allowed) {
    int turn = thread % CPU_COUNT(allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && turn-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return pthread_setaffinity_np(handle, sizeof one, &one) == 0 ? PS_OK : PS_NOT_PINNED;
        }
    }
    return PS_NOT_PINNED;
}

static void *ps_serve(void *argument) {
    ps_recruit *recruit = argument;
    int status = ps_barrier_wait(recruit->member.barrier);
    if (status == PS_OK) {
        status = recruit->task(&recruit->member, recruit->context);
    }
    if (status != PS_OK) {
        ps_barrier_break(recruit->member.barrier);
    }
    recruit->status = status;
    return NULL;
}

/* Start a thread and pin it where there is a set to pin to: from here, for it would first have to run elsewhere. */
static int ps_start(ps_recruit *recruit, const cpu_set_t *allowed) {
    if (pthread_create(&recruit->handle, NULL, ps_serve, recruit) != 0) {
        return PS_NO_THREAD;
    }
    recruit->is_started = 1;
    return allowed == NULL ? PS_OK : ps_pin(recruit->handle, recruit->member.thread, allowed);
}

/* The first failure that is not the wait for another's; a wait, where there is nothing else. */
static int ps_cause(int status, const ps_recruit *recruits, int n_threads) {
    for (int i = 0; i < n_threads; i++) {
        if (status == PS_OK || (status == PS_TIMEOUT && recruits[i].status != PS_OK)) {
            status = recruits[i].status;
        }
    }
    return status;
}

/* Start all but the first, serve as the first, and join; a thread that cannot start sends the others home. */
static int ps_serve_together(ps_recruit *recruits, int n_threads, const cpu_set_t *allowed) {
    int status = allowed == NULL ? PS_OK : ps_pin(pthread_self(), 0, allowed);
    for (int i = 1; i < n_threads && status == PS_OK; i++) {
        status = ps_start(&recruits[i], allowed);
    }
    if (status != PS_OK) {
        ps_barrier_break(recruits[0].member.barrier);
    }
    ps_serve(&recruits[0]);
    for (int i = 1; i < n_threads; i++) {
        if (recruits[i].is_started) {
            pthread_join(recruits[i].handle, NULL);
        }
    }
    return ps_cause(status, recruits, n_threads);
}

static ps_recruit *ps_recruit_team(int n_threads, ps_barrier *barrier, ps_task task, void *context) {
    ps_recruit *recruits = calloc((size_t)n_threads, sizeof *recruits);
    for (int i = 0; i < n_threads && recruits != NULL; i++) {
        recruits[i].member = (ps_member){.thread = i, .n_threads = n_threads, .barrier = barrier};
        recruits[i].task = task;
        recruits[i].context = context;
    }
    return recruits;
}

int ps_team_run(int n_threads, int pinned, ps_task task, void *context) {
    if (n_threads < 1 || n_threads > PS_MAX_THREADS || task == NULL) {
        return PS_BAD_ARGUMENT;
    }
    cpu_set_t allowed;
    if (pinned && sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return PS_NOT_PINNED;
    }
    ps_barrier barrier;
    ps_barrier_open(&barrier, n_threads, PS_BARRIER_LIMIT_NS);
    ps_recruit *recruits = ps_recruit_team(n_threads, &barrier, task, context);
    if (recruits == NULL) {
        return PS_NO_MEMORY;
    }
    int status = ps_serve_together(recruits, n_threads, pinned ? &allowed : NULL);
    if (pinned && sched_setaffinity(0, sizeof allowed, &allowed) != 0 && status == PS_OK) {
        status = PS_NOT_PINNED;
    }
    free(recruits);
    return status;
}
