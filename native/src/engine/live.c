/* The live queue; see perfsuite/live.h.
 *
 * A bounded single-producer single-consumer queue: each side writes its own counter and reads the other's.  The wake-up
 * is the usual handshake.  The producer counts the record that is worth one and then looks whether the consumer is
 * asleep; the consumer says that it will sleep and then looks whether such a record came.  Both sides are sequentially
 * consistent, so at least one of them sees the other.
 */
#include "perfsuite/live.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfsuite/clock.h"

struct ps_live_queue {
    uint64_t mask;
    uint64_t n_bytes;
    /* The producer's. */
    int64_t resumed_ns;
    uint64_t head; /* next slot that the producer writes */
    uint64_t n_dropped;
    uint64_t n_worth_waking; /* records pushed that wake the consumer */
    /* The consumer's, on a cache line of its own. */
    _Alignas(64) uint64_t tail; /* next slot that the consumer reads */
    uint64_t n_seen;            /* of `n_worth_waking`, when the consumer last began to take */
    int is_asleep;
    _Alignas(64) ps_span spans[];
};

/* What this process pushes to; NULL while none is open. */
static ps_live_queue *opened;
static int wake_up_fd;
static bool is_paused;

ps_live_queue *ps_live_map(int memory_fd) {
    struct stat file;
    if (fstat(memory_fd, &file) != 0 || (uint64_t)file.st_size < sizeof(ps_live_queue) + sizeof(ps_span)) {
        return NULL;
    }
    void *memory = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    ps_live_queue *queue = (ps_live_queue *)memory;
    uint64_t size = 1, room = ((uint64_t)file.st_size - sizeof(ps_live_queue)) / sizeof(ps_span);
    while (2 * size <= room) {
        size *= 2;
    }
    queue->mask = size - 1; /* the same, whoever maps it */
    queue->n_bytes = (uint64_t)file.st_size;
    return queue;
}

void ps_live_unmap(ps_live_queue *queue) { munmap(queue, queue->n_bytes); }

bool ps_live_open(ps_live_queue *queue, int event_fd) {
    if (opened || !queue) {
        return false;
    }
    wake_up_fd = event_fd;
    is_paused = false;
    opened = queue;
    return true;
}

void ps_live_close(void) { opened = NULL; }

void ps_live_pause(bool paused) {
    is_paused = paused;
    if (opened) {
        __atomic_store_n(&opened->resumed_ns, paused ? INT64_MAX : ps_now_ns(), __ATOMIC_RELEASE);
    }
}

static bool is_worth_waking(const ps_span *span) {
    switch (span->phase) {
    case PS_PHASE_LOAD:
    case PS_PHASE_PREFILL:
    case PS_PHASE_DECODE:
    case PS_PHASE_END_TO_END:
    case PS_PHASE_EMBED:
    case PS_PHASE_ENCODE_IMAGE:
        return true;
    default:
        return false;
    }
}

/* A full counter of the eventfd means that the consumer has plenty to wake up for, so a failure is no loss. */
static void wake(ps_live_queue *queue) {
    const uint64_t one = 1;
    if (__atomic_load_n(&queue->is_asleep, __ATOMIC_SEQ_CST) &&
        __atomic_exchange_n(&queue->is_asleep, 0, __ATOMIC_SEQ_CST)) {
        ssize_t written = write(wake_up_fd, &one, sizeof one);
        (void)written;
    }
}

void ps_live_push(const ps_span *span) {
    ps_live_queue *queue = opened;
    if (!queue || is_paused) {
        return;
    }
    uint64_t head = queue->head;
    if (head - __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) > queue->mask) {
        __atomic_store_n(&queue->n_dropped, queue->n_dropped + 1, __ATOMIC_RELAXED);
    } else {
        queue->spans[head & queue->mask] = *span;
        __atomic_store_n(&queue->head, head + 1, __ATOMIC_RELEASE);
    }
    if (is_worth_waking(span)) { /* dropped or not: a full queue is worth waking for */
        __atomic_store_n(&queue->n_worth_waking, queue->n_worth_waking + 1, __ATOMIC_SEQ_CST);
        wake(queue);
    }
}

uint64_t ps_live_take(ps_live_queue *queue, ps_span *spans, uint64_t capacity) {
    queue->n_seen = __atomic_load_n(&queue->n_worth_waking, __ATOMIC_SEQ_CST);
    uint64_t tail = queue->tail;
    uint64_t n_ready = __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE) - tail;
    uint64_t n_taken = n_ready < capacity ? n_ready : capacity;
    for (uint64_t i = 0; i < n_taken; i++) {
        spans[i] = queue->spans[(tail + i) & queue->mask];
    }
    __atomic_store_n(&queue->tail, tail + n_taken, __ATOMIC_RELEASE);
    return n_taken;
}

bool ps_live_arm(ps_live_queue *queue) {
    __atomic_store_n(&queue->is_asleep, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&queue->n_worth_waking, __ATOMIC_SEQ_CST) != queue->n_seen;
}

uint64_t ps_live_dropped(const ps_live_queue *queue) { return __atomic_load_n(&queue->n_dropped, __ATOMIC_RELAXED); }

int64_t ps_live_resumed_ns(const ps_live_queue *queue) { return __atomic_load_n(&queue->resumed_ns, __ATOMIC_ACQUIRE); }
