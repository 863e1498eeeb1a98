/* What the hooks left is moved to where it stays until somebody asks for it. */
#include "recorder_state.h"

void *ps_store_room(void *items, uint64_t n, uint64_t n_more, uint64_t *capacity, size_t size) {
    if (items && n + n_more <= *capacity) {
        return items;
    }
    uint64_t larger = *capacity ? *capacity * 2 : 4096;
    while (larger < n + n_more) {
        larger *= 2;
    }
    void *moved = realloc(items, larger * size);
    if (moved) {
        *capacity = larger;
    }
    return moved;
}

static void store(ps_recorder *r, const ps_event *event) {
    ps_event *moved = (ps_event *)ps_store_room(r->stored, r->n_stored, 1, &r->stored_capacity, sizeof(ps_event));
    if (!moved) {
        r->ring.dropped++;
        return;
    }
    r->stored = moved;
    r->stored[r->n_stored++] = *event;
}

void ps_recorder_drain(ps_recorder *r) {
    uint64_t first = r->n_stored;
    ps_event event;
    while (ps_ring_pop(&r->ring, &event)) {
        store(r, &event);
    }
    r->state = STATE_IDLE;
    ps_threads_drain(r, first);
}

bool ps_recorder_is_half_full(const ps_recorder *r) {
    bool is_half_full = ps_ring_is_half_full(&r->ring);
    for (int32_t t = 0; r->threads && t < r->n_threads; t++) {
        is_half_full = is_half_full || ps_ring_is_half_full(&r->threads[t].ring);
    }
    return is_half_full;
}

void ps_recorder_keep(ps_recorder *r) {
    ps_recorder_drain(r);
    r->n_kept = r->n_stored;
    r->n_thread_kept = r->n_thread_stored;
    r->n_choices_kept = r->n_choices;
    r->n_ids_kept = r->n_ids;
    r->n_splits_kept = r->n_splits;
}

void ps_recorder_clear(ps_recorder *r) {
    ps_recorder_drain(r);
    r->n_stored = r->n_kept;
    r->n_thread_stored = r->n_thread_kept;
    r->n_choices = r->n_choices_kept;
    r->n_ids = r->n_ids_kept;
    r->n_splits = r->n_splits_kept;
}

uint64_t ps_recorder_dropped(const ps_recorder *r) {
    uint64_t dropped = r->ring.dropped + r->n_lost_graphs;
    for (int32_t i = 0; r->threads && i < r->n_threads; i++) {
        dropped += r->threads[i].ring.dropped;
    }
    return dropped;
}

const ps_event *ps_recorder_events(const ps_recorder *r, uint64_t *n_events) {
    *n_events = r->n_stored;
    return r->stored;
}
