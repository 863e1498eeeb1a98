#include <pthread.h>

#include "check.h"
#include "perfsuite/ring.h"

enum { SMALL = 64, N_HANDED_OVER = 200000 };

TEST(capacity_is_the_next_power_of_two_and_at_least_64) {
    static const uint64_t asked[][2] = {{0, 64}, {1, 64}, {64, 64}, {65, 128}, {1000, 1024}, {4096, 4096}};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        ps_ring ring;
        CHECK(ps_ring_open(&ring, asked[i][0]));
        CHECK(ring.mask + 1 == asked[i][1]);
        ps_ring_close(&ring);
    }
}

static ps_ring ring;
static ps_event event;

/* Opens a ring in the place of the last test's. */
static void begin(void) {
    ps_ring_close(&ring);
    CHECK(ps_ring_open(&ring, SMALL));
}

TEST(an_empty_ring_gives_nothing) {
    begin();
    event.ticks = 7;
    CHECK(!ps_ring_pop(&ring, &event));
    CHECK(event.ticks == 7);
}

TEST(events_come_out_whole_and_in_order_round_after_round) {
    begin();
    uint32_t next = 0;
    for (uint32_t pushed = 0; pushed < 10 * SMALL;) {
        for (uint32_t i = 0; i < 50; i++, pushed++) {
            ps_ring_push(&ring, UINT64_C(1) << 40 | pushed, pushed ^ 5u, pushed);
        }
        while (ps_ring_pop(&ring, &event)) {
            CHECK(event.ticks == (UINT64_C(1) << 40 | next));
            CHECK(event.graph == (next ^ 5u) && event.index == next);
            next++;
        }
        CHECK(next == pushed);
    }
    CHECK(ring.dropped == 0);
}

TEST(a_full_ring_drops_and_counts_the_newest) {
    begin();
    for (uint32_t i = 0; i < SMALL + 9; i++) {
        ps_ring_push(&ring, i, 0, i);
    }
    CHECK(ring.dropped == 9);
    for (uint32_t i = 0; i < SMALL; i++) {
        CHECK(ps_ring_pop(&ring, &event) && event.index == i);
    }
    CHECK(!ps_ring_pop(&ring, &event));
    ps_ring_push(&ring, 1, 2, 3);
    CHECK(ps_ring_pop(&ring, &event) && event.ticks == 1 && event.graph == 2 && event.index == 3);
    CHECK(ring.dropped == 9);
}

TEST(counters_that_wrap_lose_nothing) {
    begin();
    ring.head = ring.tail = UINT64_MAX - 10;
    for (uint32_t i = 0; i < SMALL + 1; i++) {
        ps_ring_push(&ring, i, 0, i);
    }
    CHECK(ring.dropped == 1);
    for (uint32_t i = 0; i < SMALL; i++) {
        CHECK(ps_ring_pop(&ring, &event) && event.index == i);
    }
    CHECK(!ps_ring_pop(&ring, &event));
}

typedef struct shared {
    ps_ring ring;
    int is_over; /* set once the last event was pushed */
} shared;

static void *produce(void *context) {
    shared *both = context;
    for (uint32_t i = 0; i < N_HANDED_OVER; i++) {
        ps_ring_push(&both->ring, (uint64_t)i * 3, i ^ 0xffu, i);
    }
    __atomic_store_n(&both->is_over, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The consumer sees a rising sequence of whole events; with those that were dropped they are all. */
TEST(two_threads_lose_nothing_uncounted) {
    shared both = {.is_over = 0};
    pthread_t producer;
    CHECK(ps_ring_open(&both.ring, 1024));
    CHECK(pthread_create(&producer, NULL, produce, &both) == 0);
    uint64_t n_seen = 0;
    int64_t last = -1;
    for (bool was_over = false; !was_over;) {
        was_over = __atomic_load_n(&both.is_over, __ATOMIC_ACQUIRE) != 0;
        ps_event event;
        for (; ps_ring_pop(&both.ring, &event); n_seen++) {
            CHECK((int64_t)event.index > last);
            CHECK(event.ticks == (uint64_t)event.index * 3 && event.graph == (event.index ^ 0xffu));
            last = event.index;
        }
    }
    CHECK(pthread_join(producer, NULL) == 0);
    CHECK(n_seen + both.ring.dropped == N_HANDED_OVER);
    ps_ring_close(&both.ring);
}
