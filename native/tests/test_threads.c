#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <sched.h>

#include "check.h"
#include "perfsuite/clock.h"
#include "perfsuite/threads.h"

enum { N_ROUNDS = 50, MOST_THREADS = 8 };

typedef struct shared {
    int rounds[MOST_THREADS];
    int failing; /* the thread whose task fails, -1 for none */
} shared;

/* Between two barriers, every thread sees that every other has come as far as itself. */
static int count_rounds(const ps_member *member, void *context) {
    shared *all = context;
    for (int round = 1; round <= N_ROUNDS; round++) {
        all->rounds[member->thread] = round;
        if (ps_barrier_wait(member->barrier) != PS_OK) {
            return PS_TIMEOUT;
        }
        for (int i = 0; i < member->n_threads; i++) {
            CHECK(all->rounds[i] == round);
        }
        if (ps_barrier_wait(member->barrier) != PS_OK) {
            return PS_TIMEOUT;
        }
    }
    return PS_OK;
}

TEST(teams_of_every_size_keep_step) {
    for (int n_threads = 1; n_threads <= MOST_THREADS; n_threads++) {
        shared all = {.failing = -1};
        CHECK(ps_team_run(n_threads, 0, count_rounds, &all) == PS_OK);
        for (int i = 0; i < MOST_THREADS; i++) {
            CHECK(all.rounds[i] == (i < n_threads ? N_ROUNDS : 0));
        }
    }
}

static int fail_one(const ps_member *member, void *context) {
    shared *all = context;
    if (member->thread == all->failing) {
        return PS_NO_MEMORY;
    }
    return ps_barrier_wait(member->barrier);
}

TEST(one_failure_sends_the_team_home_and_is_the_cause) {
    for (int failing = 0; failing < 4; failing++) {
        shared all = {.failing = failing};
        int64_t begin_ns = ps_now_ns();
        CHECK(ps_team_run(4, 0, fail_one, &all) == PS_NO_MEMORY);
        CHECK(ps_now_ns() - begin_ns < PS_BARRIER_LIMIT_NS);
    }
}

TEST(a_wait_for_nobody_ends_at_its_limit) {
    ps_barrier barrier;
    ps_barrier_open(&barrier, 2, 1000000);
    int64_t begin_ns = ps_now_ns();
    CHECK(ps_barrier_wait(&barrier) == PS_TIMEOUT);
    CHECK(ps_now_ns() - begin_ns >= 1000000);
    CHECK(ps_barrier_wait(&barrier) == PS_TIMEOUT);
}

TEST(a_broken_barrier_lets_nobody_wait) {
    ps_barrier barrier;
    ps_barrier_open(&barrier, 2, INT64_MAX / 2);
    ps_barrier_break(&barrier);
    CHECK(ps_barrier_wait(&barrier) == PS_TIMEOUT);
}

TEST(a_generation_that_wraps_goes_on) {
    ps_barrier barrier;
    ps_barrier_open(&barrier, 1, 1000000);
    barrier.generation = UINT32_MAX;
    CHECK(ps_barrier_wait(&barrier) == PS_OK);
    CHECK(barrier.generation == 0);
    CHECK(ps_barrier_wait(&barrier) == PS_OK);
}

static int have_one_processor(const ps_member *member, void *context) {
    cpu_set_t mine;
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    CHECK(CPU_COUNT(&mine) == 1);
    return PS_OK;
}

TEST(pinned_threads_have_one_processor_and_the_caller_gets_its_own_back) {
    cpu_set_t before, after;
    CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
    CHECK(ps_team_run(3, 1, have_one_processor, NULL) == PS_OK);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0);
    CHECK(CPU_EQUAL(&before, &after));
}

TEST(teams_that_cannot_be_are_refused) {
    CHECK(ps_team_run(0, 0, have_one_processor, NULL) == PS_BAD_ARGUMENT);
    CHECK(ps_team_run(-1, 0, have_one_processor, NULL) == PS_BAD_ARGUMENT);
    CHECK(ps_team_run(PS_MAX_THREADS + 1, 0, have_one_processor, NULL) == PS_BAD_ARGUMENT);
    CHECK(ps_team_run(1, 0, NULL, NULL) == PS_BAD_ARGUMENT);
}
