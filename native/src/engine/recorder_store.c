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

/* What an event of the ring is stored as: reports of nodes' ends become those of operators. */
static uint32_t stored_index(const ps_recorder *r, const ps_event *event) {
    bool is_report = event->index != 0 && event->index != PS_EVENT_FIRST_START;
    bool is_of_node = r->kind != PS_RECORDER_CB_EVAL && r->kind != PS_RECORDER_GROUPS;
    if (!is_report || !is_of_node || event->index > r->graphs[event->graph].n_reports) {
        return event->index;
    }
    return r->graphs[event->graph].reports[event->index - 1].index;
}

static void store(ps_recorder *r, const ps_event *event) {
    ps_event *moved = (ps_event *)ps_store_room(r->stored, r->n_stored, 1, &r->stored_capacity, sizeof(ps_event));
    if (!moved) {
        r->ring.dropped++;
        return;
    }
    r->stored = moved;
    uint32_t index = stored_index(r, event);
    if (event->index == 0 || index != PS_REPORT_OF_A_PART) {
        r->stored[r->n_stored++] = (ps_event){.ticks = event->ticks, .graph = event->graph, .index = index};
    }
}

void ps_recorder_drain(ps_recorder *r) {
    uint64_t first = r->n_stored;
    ps_event event;
    ps_hooks_end_evaluation(r);
    while (ps_ring_pop(&r->ring, &event)) {
        store(r, &event);
    }
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
