/* The hooks of the callback recorder, and whom the interposed functions report to.
 *
 * The hot path is ps_recorder_ask (about 900 calls a decode step) and ps_recorder_tick (about 500): no clock call, no
 * lock, no allocation.  A graph that was seen before is known again by a hash over its nodes' addresses, and over the
 * operators and shapes of some; only a new one is copied out.
 */
#include <string.h>

#include "ggml-backend.h"
#include "interposed.h"
#include "perfsuite/clock.h"
#include "recorder_state.h"

/* A decode step streams the whole model through the caches, so looking into every tensor of the next graph is a cache
 * miss each.  Layers are alike: the batch, the context length and the outputs show in the first layers and in the last
 * node, and the rest of the graph is known by its addresses. */
enum { N_SIGNED = 96 };

uint32_t ps_watching;

static ps_recorder *watched;

static void watch(uint32_t bits) { __atomic_store_n(&ps_watching, bits, __ATOMIC_RELAXED); }

static uint32_t bits_of_kind(ps_recorder_kind kind) {
    return kind == PS_RECORDER_PRELOAD ? PS_WATCH_THREADS : kind == PS_RECORDER_SPLITS ? PS_WATCH_SPLITS : 0;
}

static uint32_t watched_bits(const ps_recorder *r) {
    return !r ? 0 : bits_of_kind(r->kind) | (r->follows_backends ? PS_WATCH_BACKENDS : 0);
}

void ps_recorder_watch_entries(ps_recorder *recorder) {
    watched = recorder;
    watch(watched_bits(recorder));
}

void ps_hooks_forget(const ps_recorder *r) {
    if (watched == r) {
        ps_recorder_watch_entries(NULL);
    }
}

ps_recorder *ps_hooks_watched(void) { return watched; }

/* ---- an evaluation --------------------------------------------------------------------------------------------- */

void ps_hooks_end_evaluation(ps_recorder *r) {
    if (r->state == STATE_COMPUTING && r->current >= 0 && !r->graphs[r->current].is_settled) {
        ps_graphs_settle(&r->graphs[r->current], r->n_ticked);
    }
    r->state = STATE_IDLE;
}

static void begin_asking(ps_recorder *r) {
    ps_hooks_end_evaluation(r);
    r->state = STATE_ASKING;
    r->n_asked = 0;
    r->hash = UINT64_C(0x243F6A8885A308D3);
    r->launch_ticks = ps_ticks();
}

static void begin_computing(ps_recorder *r) {
    r->state = STATE_COMPUTING;
    r->n_ticked = 0;
    r->current = -1;
    if (r->n_asked <= MAX_NODES) {
        r->hash = ps_mix(r->hash, ps_signature(r->asked[r->n_asked - 1]));
        r->current = ps_graphs_find(r);
    } else {
        r->n_lost_graphs++;
    }
    if (ps_is_watching(PS_WATCH_FIRST_ENTRY)) {
        watch(watched_bits(watched));
    }
    if (r->current >= 0) {
        ps_ring_push(&r->ring, r->launch_ticks, (uint32_t)r->current, 0);
    }
    r->previous_ticks = r->launch_ticks;
}

static inline void note(ps_recorder *r, const struct ggml_tensor *tensor) {
    if (r->state != STATE_ASKING) {
        begin_asking(r);
    }
    uint32_t position = r->n_asked++;
    if (position >= MAX_NODES) {
        return;
    }
    r->asked[position] = tensor;
    r->hash = ps_mix(r->hash, position < N_SIGNED ? ps_signature(tensor) : (uint64_t)(uintptr_t)tensor);
    if (r->may_be_last[position]) {
        r->launch_ticks = ps_ticks();
        if (watched == r) {
            watch(watched_bits(r) | PS_WATCH_FIRST_ENTRY);
        }
    }
}

void ps_hooks_note(ps_recorder *r, const struct ggml_tensor *tensor) { note(r, tensor); }

/* ---- groups of nodes, which a backend computes and waits for one by one ------------------------------------------- */

void ps_recorder_set_groups(ps_recorder *r, const uint8_t *ends, int32_t n_nodes) {
    r->group_ends = ends;
    r->n_group_nodes = n_nodes;
}

static bool ask_in_groups(ps_recorder *r, const struct ggml_tensor *tensor, bool ask) {
    if (!ask) { /* the group whose last node was asked for last is computed */
        if (r->n_asked <= MAX_NODES) {
            r->groups[r->n_groups++] = (ps_event){.ticks = ps_ticks(), .index = r->n_asked};
        }
        return true;
    }
    if (r->state != STATE_ASKING) {
        begin_asking(r);
        r->n_groups = 0;
    }
    uint32_t position = r->n_asked++;
    if (position < MAX_NODES) {
        r->asked[position] = tensor;
        r->hash = ps_mix(r->hash, ps_signature(tensor));
    }
    return position >= (uint32_t)r->n_group_nodes || r->group_ends[position];
}

void ps_recorder_end_evaluation(ps_recorder *r) {
    if (r->kind != PS_RECORDER_GROUPS || r->state != STATE_ASKING) {
        return;
    }
    begin_computing(r);
    for (uint32_t i = 0; r->current >= 0 && i < r->n_groups; i++) {
        ps_ring_push(&r->ring, r->groups[i].ticks, (uint32_t)r->current, r->groups[i].index);
    }
    r->state = STATE_IDLE;
}

/* ---- who asks ----------------------------------------------------------------------------------------------------- */

static bool ask_naively(ps_recorder *r, bool ask) {
    if (!ask) { /* only after an answer of true */
        ps_ring_push(&r->ring, ps_ticks(), 0, 1);
    }
    return true;
}

static bool ask_otherwise(ps_recorder *r, const struct ggml_tensor *tensor, bool ask) {
    switch (r->kind) {
    case PS_RECORDER_CB_EVAL: return ask_naively(r, ask);
    case PS_RECORDER_GROUPS: return ask_in_groups(r, tensor, ask);
    default: return ps_experts_ask(r, tensor, ask);
    }
}

bool ps_recorder_ask(struct ggml_tensor *tensor, bool ask, void *recorder) {
    ps_recorder *r = (ps_recorder *)recorder;
    r->was_asked = true;
    if (__builtin_expect(r->kind >= PS_RECORDER_CB_EVAL, 0)) {
        return ask_otherwise(r, tensor, ask);
    }
    note(r, tensor);
    return false;
}

bool ps_recorder_was_asked(ps_recorder *r) {
    bool was_asked = r->was_asked;
    r->was_asked = false;
    return was_asked;
}

/* ---- its operators --------------------------------------------------------------------------------------------- */

static uint64_t busy_wait(const ps_recorder *r, uint64_t now) {
    uint64_t wait = (uint64_t)((double)(now - r->previous_ticks) * r->inject_ratio + r->inject_extra_ticks);
    uint64_t until = now + wait;
    while ((now = ps_ticks()) < until) {
    }
    return now;
}

bool ps_recorder_tick(void *recorder) {
    ps_recorder *r = (ps_recorder *)recorder;
    uint64_t now = ps_ticks();
    if (r->state == STATE_ASKING) {
        begin_computing(r);
    }
    uint32_t index = r->n_ticked++;
    if (r->current >= 0) {
        const ps_graph *graph = &r->graphs[r->current];
        if (r->inject_op[0] && index < graph->n_reports && graph->reports[index].is_slowed) {
            now = busy_wait(r, now);
        }
        ps_ring_push(&r->ring, now, (uint32_t)r->current, index + 1);
    }
    r->previous_ticks = now;
    return r->only_asks;
}

/* Called on every thread. */
void ps_recorder_entry(int ith, const struct ggml_tensor *tensor) {
    ps_recorder *r = watched;
    if (ps_is_watching(PS_WATCH_THREADS)) {
        if (ith == 0 && r->state == STATE_ASKING) {
            begin_computing(r);
        }
        ps_threads_enter(r, ith, tensor);
    } else if (ith == 0 && ps_is_watching(PS_WATCH_FIRST_ENTRY)) {
        watch(watched_bits(r));
        ps_ring_push(&r->ring, ps_ticks(), 0, PS_EVENT_FIRST_START);
    }
}

/* ---- the backends of somebody else's contexts, who come to report the ends of their nodes ------------------------- */

void ps_recorder_follow_backends(ps_recorder *r, bool is_wanted) {
    if (r && (r->kind == PS_RECORDER_CALLBACK || r->kind == PS_RECORDER_EXPERTS)) {
        r->follows_backends = is_wanted;
        ps_recorder_watch_entries(r);
    }
}

void ps_recorder_only_ask(ps_recorder *r) { r->only_asks = true; }

void ps_recorder_follow(struct ggml_backend *backend) {
    ggml_backend_dev_t device = ggml_backend_get_device(backend);
    if (!device || ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) {
        return;
    }
    ggml_backend_reg_t registered = ggml_backend_dev_backend_reg(device);
    void *found = ggml_backend_reg_get_proc_address(registered, "ggml_backend_set_abort_callback");
    if (found) {
        ggml_backend_set_abort_callback_t set_callback;
        memcpy(&set_callback, &found, sizeof(set_callback));
        set_callback(backend, ps_recorder_tick, watched);
    }
}
