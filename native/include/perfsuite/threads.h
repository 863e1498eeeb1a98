/* A team of threads that starts together, meets at spin barriers and ends together.
 *
 * Every wait is bounded: a barrier spins, then yields, and breaks after its limit, which sends the whole team home.
 */
#ifndef PERFSUITE_THREADS_H
#define PERFSUITE_THREADS_H

#include <stdint.h>

#include "perfsuite/probe_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PS_CACHE_LINE 64
#define PS_MAX_THREADS 1024
#define PS_BARRIER_LIMIT_NS INT64_C(10000000000)

/* Each word that threads write while they wait has a cache line of its own. */
typedef struct ps_barrier {
    int32_t arrived;
    char gap_arrived[PS_CACHE_LINE - sizeof(int32_t)];
    uint32_t generation;
    char gap_generation[PS_CACHE_LINE - sizeof(uint32_t)];
    int32_t n_threads;
    int32_t broken;
    int64_t limit_ns;
} ps_barrier;

/* What a thread of a team knows of itself; thread 0 is the caller's. */
typedef struct ps_member {
    int32_t thread;
    int32_t n_threads;
    ps_barrier *barrier;
} ps_member;

/* What each thread of a team does; returns a ps_status. */
typedef int (*ps_task)(const ps_member *member, void *context);

void ps_barrier_open(ps_barrier *barrier, int n_threads, int64_t limit_ns);

/* Wait for the other threads: PS_OK, or PS_TIMEOUT when the limit passed or the barrier was broken. */
int ps_barrier_wait(ps_barrier *barrier);

/* Make every present and later wait return PS_TIMEOUT. */
void ps_barrier_break(ps_barrier *barrier);

/* Run `task` on `n_threads` threads, the caller's among them, and return when all have ended.
 *
 * With `pinned`, thread i runs on the i-th processor (in turn) that the caller may use; the caller's own affinity is
 * given back.  A task that fails breaks the barrier for the others.  Returns the cause: the failure that was not a
 * wait for somebody else's. */
int ps_team_run(int n_threads, int pinned, ps_task task, void *context);

#ifdef __cplusplus
}
#endif

#endif
