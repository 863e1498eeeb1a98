/* The experts that each layer's router chose, read where the graph is cut behind it. */
#include <string.h>

#include "ggml-backend.h"
#include "perfsuite/clock.h"
#include "recorder_state.h"

/* The layer of the tensor of a router's choice, "ffn_moe_topk-7"; -1 for any other. */
static int32_t chosen_layer(const struct ggml_tensor *tensor) {
    static const char prefix[] = "ffn_moe_topk-";
    if (strncmp(tensor->name, prefix, sizeof(prefix) - 1) != 0) {
        return -1;
    }
    char *end;
    long layer = strtol(tensor->name + sizeof(prefix) - 1, &end, 10);
    return *end || end == tensor->name + sizeof(prefix) - 1 || layer < 0 || layer > INT16_MAX ? -1 : (int32_t)layer;
}

/* The best experts are the first columns of all of them sorted, so the rows lie further apart than they are long. */
static void read_rows(const struct ggml_tensor *tensor, int32_t *ids, int32_t n_tokens) {
    for (int32_t token = 0; token < n_tokens; token++) {
        ggml_backend_tensor_get(tensor, ids + token * tensor->ne[0], (size_t)token * tensor->nb[1],
                                (size_t)tensor->ne[0] * sizeof(int32_t));
    }
}

static void keep_choice(ps_recorder *r, const struct ggml_tensor *tensor) {
    uint64_t now = ps_ticks();
    int32_t n_used = (int32_t)tensor->ne[0], n_tokens = (int32_t)ggml_nrows(tensor);
    uint64_t n_ids = (uint64_t)n_used * (uint64_t)n_tokens;
    void *choices = ps_store_room(r->choices, r->n_choices, 1, &r->choices_capacity, sizeof(*r->choices));
    r->choices = choices ? choices : r->choices;
    void *ids = ps_store_room(r->ids, r->n_ids, n_ids, &r->ids_capacity, sizeof(*r->ids));
    r->ids = ids ? ids : r->ids;
    if (!choices || !ids) {
        r->ring.dropped++;
        return;
    }
    read_rows(tensor, r->ids + r->n_ids, n_tokens);
    r->choices[r->n_choices++] = (ps_expert_choice){
        .ticks = now,
        .first_id = r->n_ids,
        .layer = chosen_layer(tensor),
        .n_tokens = n_tokens,
        .n_used = n_used,
        .n_experts = tensor->src[0] ? (int32_t)tensor->src[0]->ne[0] : 0,
    };
    r->n_ids += n_ids;
}

/* Each piece of the graph is one of its own; one that the CPU backend did not compute has no times. */
bool ps_experts_ask(ps_recorder *r, const struct ggml_tensor *tensor, bool ask) {
    if (ask) {
        ps_hooks_note(r, tensor);
        return tensor->type == GGML_TYPE_I32 && tensor->ne[0] > 0 && chosen_layer(tensor) >= 0;
    }
    ps_hooks_end_evaluation(r);
    if (ggml_nrows(tensor) > 0) {
        keep_choice(r, tensor);
    }
    return true;
}

const ps_expert_choice *ps_recorder_expert_choices(const ps_recorder *r, uint64_t *n_choices) {
    *n_choices = r->n_choices;
    return r->choices;
}

const int32_t *ps_recorder_expert_ids(const ps_recorder *r) { return r->ids; }
