#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "perfsuite/live.h"

enum { SMALL = 64, N_HANDED_OVER = 100000, N_SLOT = 32 };

static ps_span span_of(ps_phase phase, int32_t number) {
    return (ps_span){.phase = phase,
                     .token = number,
                     .repetition = number ^ 5,
                     .n_tokens = number + 1,
                     .start_ns = (int64_t)number << 20,
                     .end_ns = ((int64_t)number << 20) + 7};
}

static void push(ps_phase phase, int32_t number) {
    const ps_span span = span_of(phase, number);
    ps_live_push(&span);
}

static bool is_whole(const ps_span *span) {
    const ps_span expected = span_of((ps_phase)span->phase, span->token);
    return span->repetition == expected.repetition && span->n_tokens == expected.n_tokens &&
           span->start_ns == expected.start_ns && span->end_ns == expected.end_ns;
}

/* The consumer's mapping of the memory; the producer has another one, as it has in another process. */
static ps_live_queue *queue;
static ps_live_queue *produced;
static int event_fd = -1;

static void end(void) {
    ps_live_close();
    ps_live_unmap(queue);
    ps_live_unmap(produced);
    CHECK(close(event_fd) == 0);
    event_fd = -1;
}

/* Opens a queue in the place of the last test's. */
static void begin(void) {
    if (event_fd >= 0) {
        end();
    }
    int memory_fd = memfd_create("queue", MFD_CLOEXEC);
    event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(event_fd >= 0 && memory_fd >= 0);
    CHECK(!ps_live_map(memory_fd)); /* no room for one record */
    CHECK(ftruncate(memory_fd, 256 + SMALL * sizeof(ps_span)) == 0);
    queue = ps_live_map(memory_fd);
    produced = ps_live_map(memory_fd);
    CHECK(queue && produced && queue != produced);
    CHECK(close(memory_fd) == 0);
    CHECK(ps_live_open(produced, event_fd));
}

/* How often the eventfd was written to since this was asked last. */
static uint64_t wake_ups(void) {
    uint64_t count = 0;
    return read(event_fd, &count, sizeof count) == (ssize_t)sizeof count ? count : 0;
}

TEST(while_it_is_closed_a_push_goes_nowhere) {
    ps_span span;
    push(PS_PHASE_DECODE, 1);
    begin();
    CHECK(ps_live_take(queue, &span, 1) == 0 && ps_live_dropped(queue) == 0);
    end();
    push(PS_PHASE_DECODE, 2);
}

TEST(there_is_one_queue_at_a_time) {
    begin();
    CHECK(!ps_live_open(produced, event_fd) && !ps_live_open(NULL, event_fd));
}

TEST(records_come_out_whole_and_in_order_round_after_round) {
    begin();
    ps_span spans[N_SLOT];
    int32_t next = 0;
    for (int32_t pushed = 0; pushed < 10 * SMALL;) {
        for (int i = 0; i < 50; i++, pushed++) {
            push(PS_PHASE_COPY, pushed);
        }
        for (uint64_t n; (n = ps_live_take(queue, spans, N_SLOT)) > 0;) {
            CHECK(n <= N_SLOT);
            for (uint64_t i = 0; i < n; i++, next++) {
                CHECK(spans[i].token == next && is_whole(&spans[i]));
            }
        }
        CHECK(next == pushed);
    }
    CHECK(ps_live_dropped(queue) == 0);
}

TEST(a_full_queue_drops_and_counts_the_newest) {
    begin();
    ps_span spans[SMALL];
    for (int32_t i = 0; i < SMALL + 9; i++) {
        push(PS_PHASE_SAMPLING, i);
    }
    CHECK(ps_live_dropped(queue) == 9);
    CHECK(ps_live_take(queue, spans, SMALL) == SMALL && spans[SMALL - 1].token == SMALL - 1);
    CHECK(ps_live_take(queue, spans, SMALL) == 0);
    push(PS_PHASE_SAMPLING, 3);
    CHECK(ps_live_take(queue, spans, SMALL) == 1 && spans[0].token == 3);
}

TEST(a_pause_is_silent_and_ends) {
    begin();
    ps_span span;
    ps_live_arm(queue);
    CHECK(ps_live_resumed_ns(queue) == 0);
    ps_live_pause(true);
    CHECK(ps_live_resumed_ns(queue) == INT64_MAX);
    push(PS_PHASE_DECODE, 1);
    CHECK(wake_ups() == 0 && ps_live_take(queue, &span, 1) == 0);
    ps_live_pause(false);
    CHECK(ps_live_resumed_ns(queue) > 0 && ps_live_resumed_ns(queue) <= ps_now_ns());
    push(PS_PHASE_DECODE, 2);
    CHECK(wake_ups() == 1 && ps_live_take(queue, &span, 1) == 1 && span.token == 2);
}

TEST(only_who_sleeps_is_woken_once_and_for_what_is_worth_it) {
    begin();
    ps_span spans[SMALL];
    push(PS_PHASE_DECODE, 0);
    CHECK(wake_ups() == 0);
    CHECK(ps_live_arm(queue)); /* that decode step came before: do not wait */
    CHECK(ps_live_take(queue, spans, SMALL) == 1);
    CHECK(!ps_live_arm(queue));
    push(PS_PHASE_COPY, 1);
    push(PS_PHASE_SOFTMAX, 2);
    push(PS_PHASE_SAMPLING, 3);
    CHECK(wake_ups() == 0);
    push(PS_PHASE_DECODE, 4);
    push(PS_PHASE_DECODE, 5);
    CHECK(wake_ups() == 1);
    CHECK(ps_live_take(queue, spans, SMALL) == 5);
    static const ps_phase worth_it[] = {PS_PHASE_LOAD, PS_PHASE_PREFILL, PS_PHASE_DECODE, PS_PHASE_END_TO_END,
                                         PS_PHASE_EMBED, PS_PHASE_ENCODE_IMAGE};
    for (size_t i = 0; i < sizeof worth_it / sizeof worth_it[0]; i++) {
        CHECK(!ps_live_arm(queue));
        push(worth_it[i], 6);
        CHECK(wake_ups() == 1 && ps_live_take(queue, spans, SMALL) == 1);
    }
}

TEST(a_full_queue_still_wakes) {
    begin();
    for (int32_t i = 0; i < SMALL; i++) {
        push(PS_PHASE_COPY, i);
    }
    CHECK(!ps_live_arm(queue));
    push(PS_PHASE_DECODE, SMALL);
    CHECK(ps_live_dropped(queue) == 1 && wake_ups() == 1);
}

static void *produce(void *context) {
    for (int32_t i = 0; i < N_HANDED_OVER; i++) {
        push(i % 4 == 0 ? PS_PHASE_DECODE : PS_PHASE_COPY, i);
        if (i % 16 == 0) {
            sched_yield(); /* so that the consumer falls asleep now and then */
        }
    }
    push(PS_PHASE_END_TO_END, N_HANDED_OVER);
    return NULL;
}

/* The consumer sleeps whenever there is nothing for it.  A lost wake-up would leave it waiting for the rest of the time
 * that the test may take, and a record that is neither seen nor counted would leave the sum short. */
TEST(a_sleeping_consumer_loses_nothing_uncounted) {
    begin();
    pthread_t producer;
    CHECK(pthread_create(&producer, NULL, produce, NULL) == 0);
    ps_span spans[N_SLOT];
    uint64_t n_seen = 0;
    int32_t last = -1;
    for (bool is_over = false; !is_over;) {
        struct pollfd ready = {.fd = event_fd, .events = POLLIN};
        for (uint64_t n; (n = ps_live_take(queue, spans, N_SLOT)) > 0; n_seen += n) {
            for (uint64_t i = 0; i < n; i++) {
                CHECK(spans[i].token > last && is_whole(&spans[i]));
                last = spans[i].token;
            }
        }
        is_over = n_seen + ps_live_dropped(queue) == (uint64_t)N_HANDED_OVER + 1;
        if (!is_over && !ps_live_arm(queue)) {
            CHECK(poll(&ready, 1, 30000) == 1);
            wake_ups();
        }
    }
    CHECK(pthread_join(producer, NULL) == 0);
    CHECK(last <= N_HANDED_OVER);
}
