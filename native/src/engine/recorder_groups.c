/* The groups of nodes that a backend computes and waits for one by one. */
#include "perfsuite/clock.h"
#include "recorder_state.h"

void ps_recorder_set_groups(ps_recorder *r, const uint8_t *ends, int32_t n_nodes) {
    r->group_ends = ends;
    r->n_group_nodes = n_nodes;
}

bool ps_groups_ask(ps_recorder *r, const struct ggml_tensor *tensor, bool ask) {
    if (!ask) { /* the group whose last node was asked for last is computed */
        if (r->n_asked <= MAX_NODES) {
            r->groups[r->n_groups++] = (ps_event){.ticks = ps_ticks(), .index = r->n_asked};
        }
        return true;
    }
    if (r->state != STATE_ASKING) {
        ps_hooks_begin_asking(r);
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
    ps_hooks_begin_computing(r);
    for (uint32_t i = 0; r->current >= 0 && i < r->n_groups; i++) {
        ps_ring_push(&r->ring, r->groups[i].ticks, (uint32_t)r->current, r->groups[i].index);
    }
    r->state = STATE_IDLE;
}
