/* The live queue; see perfsuite/live.h.
 *
 * A bounded single-producer single-consumer queue: each side writes its own counter and reads the other's.  The wake-up
 * is the usual handshake.  The producer counts the record that is worth one and then looks whether the consumer is
 * asleep; the consumer says that it will sleep and then looks whether such a record came.  Both sides are sequentially
 * consistent, so at least one of them sees the other.
 */
#include "perfsuite/live.h"

#include <stdlib.h>
#include <unistd.h>

enum { LEAST_CAPACITY = 64 };

typedef struct live_queue {
    ps_span *spans; /* NULL while it is closed */
    uint64_t mask;
    int event_fd;
    bool is_paused;
    uint64_t head; /* next slot that the producer writes */
    uint64_t n_dropped;
    uint64_t n_worth_waking; /* records pushed that wake the consumer */
    /* The consumer's, on a cache line of its own. */
    _Alignas(64) uint64_t tail; /* next slot that the consumer reads */
    uint64_t n_seen;            /* of `n_worth_waking`, when the consumer last began to take */
    int is_asleep;
} live_queue;

static live_queue queue;

bool ps_live_open(uint64_t capacity, int event_fd) {
    if (queue.spans) {
        return false;
    }
    uint64_t size = LEAST_CAPACITY;
    while (size < capacity && size < (UINT64_C(1) << 32)) {
        size <<= 1;
    }
    queue = (live_queue){.mask = size - 1, .event_fd = event_fd};
    queue.spans = (ps_span *)calloc(size, sizeof(ps_span));
    return queue.spans != NULL;
}

void ps_live_close(void) {
    free(queue.spans);
    queue.spans = NULL;
}

void ps_live_pause(bool paused) { queue.is_paused = paused; }

static bool is_worth_waking(const ps_span *span) {
    return span->phase == PS_PHASE_LOAD || span->phase == PS_PHASE_PREFILL || span->phase == PS_PHASE_DECODE ||
           span->phase == PS_PHASE_END_TO_END;
}

/* A full counter of the eventfd means that the consumer has plenty to wake up for, so a failure is no loss. */
static void wake(void) {
    const uint64_t one = 1;
    if (__atomic_load_n(&queue.is_asleep, __ATOMIC_SEQ_CST) &&
        __atomic_exchange_n(&queue.is_asleep, 0, __ATOMIC_SEQ_CST)) {
        ssize_t written = write(queue.event_fd, &one, sizeof one);
        (void)written;
    }
}

void ps_live_push(const ps_span *span) {
    if (!queue.spans || queue.is_paused) {
        return;
    }
    uint64_t head = queue.head;
    if (head - __atomic_load_n(&queue.tail, __ATOMIC_ACQUIRE) > queue.mask) {
        __atomic_store_n(&queue.n_dropped, queue.n_dropped + 1, __ATOMIC_RELAXED);
    } else {
        queue.spans[head & queue.mask] = *span;
        __atomic_store_n(&queue.head, head + 1, __ATOMIC_RELEASE);
    }
    if (is_worth_waking(span)) { /* dropped or not: a full queue is worth waking for */
        __atomic_store_n(&queue.n_worth_waking, queue.n_worth_waking + 1, __ATOMIC_SEQ_CST);
        wake();
    }
}

uint64_t ps_live_take(ps_span *spans, uint64_t capacity) {
    queue.n_seen = __atomic_load_n(&queue.n_worth_waking, __ATOMIC_SEQ_CST);
    uint64_t tail = queue.tail;
    uint64_t n_ready = __atomic_load_n(&queue.head, __ATOMIC_ACQUIRE) - tail;
    uint64_t n_taken = n_ready < capacity ? n_ready : capacity;
    for (uint64_t i = 0; i < n_taken; i++) {
        spans[i] = queue.spans[(tail + i) & queue.mask];
    }
    __atomic_store_n(&queue.tail, tail + n_taken, __ATOMIC_RELEASE);
    return n_taken;
}

bool ps_live_arm(void) {
    __atomic_store_n(&queue.is_asleep, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&queue.n_worth_waking, __ATOMIC_SEQ_CST) != queue.n_seen;
}

uint64_t ps_live_dropped(void) { return __atomic_load_n(&queue.n_dropped, __ATOMIC_RELAXED); }
