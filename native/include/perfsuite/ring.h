/* A bounded single-producer single-consumer ring of fixed-size events.
 *
 * The producer never waits: when the ring is full the event is dropped and counted.  The consumer drains it outside
 * the timed region.  Capacity is a power of two.
 */
#ifndef PERFSUITE_RING_H
#define PERFSUITE_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operator event. `index` 0 is the launch of the graph, PS_EVENT_FIRST_START the entry of its first operator,
 * k >= 1 the end of its k-th timed operator, and PS_EVENT_NOTHING the end of a node that computes nothing, where a
 * release of llama.cpp reports those. */
typedef struct ps_event {
    uint64_t ticks;
    uint32_t graph;
    uint32_t index;
} ps_event;

#define PS_EVENT_FIRST_START 0xffffffffu
#define PS_EVENT_NOTHING 0xfffffffeu

typedef struct ps_ring {
    ps_event *events;
    uint64_t mask;
    uint64_t head; /* next slot that the producer writes; owned by the producer */
    uint64_t tail; /* next slot that the consumer reads; owned by the consumer */
    uint64_t dropped;
} ps_ring;

static inline bool ps_ring_open(ps_ring *ring, uint64_t capacity) {
    uint64_t size = 64;
    while (size < capacity && size < (UINT64_C(1) << 40)) {
        size <<= 1;
    }
    ring->events = (ps_event *)calloc(size, sizeof(ps_event)); /* zeroed, so that no page fault falls into a phase */
    ring->mask = size - 1;
    ring->head = ring->tail = ring->dropped = 0;
    return ring->events != NULL;
}

static inline void ps_ring_close(ps_ring *ring) {
    free(ring->events);
    ring->events = NULL;
}

static inline void ps_ring_push(ps_ring *ring, uint64_t ticks, uint32_t graph, uint32_t index) {
    uint64_t head = ring->head;
    if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > ring->mask) {
        ring->dropped++;
        return;
    }
    ps_event *event = &ring->events[head & ring->mask];
    event->ticks = ticks;
    event->graph = graph;
    event->index = index;
    __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
}

/* For the consumer, to drain in time. */
static inline bool ps_ring_is_half_full(const ps_ring *ring) {
    return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - ring->tail > ring->mask / 2;
}

static inline bool ps_ring_pop(ps_ring *ring, ps_event *out) {
    uint64_t tail = ring->tail;
    if (tail == __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *out = ring->events[tail & ring->mask];
    __atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
