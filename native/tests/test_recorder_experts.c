/* The experts recorder, on graphs with a router. */
#include "fake_graph.h"
#include "perfsuite/clock.h"

enum { N_EXPERTS = 8, N_TOKENS = 3, N_USED = 2 };

static int32_t sorted[N_TOKENS][N_EXPERTS]; /* of each token, all experts from the best to the worst */

/* A product, the experts sorted, the best of them, and a sum. */
static void routed_graph(graph *g, int layer) {
    empty_graph(g);
    struct ggml_tensor *product = add(g, GGML_OP_MUL_MAT, &g->weight, &g->weight);
    struct ggml_tensor *order = add(g, GGML_OP_ARGSORT, product, NULL);
    struct ggml_tensor *best = add(g, GGML_OP_VIEW, order, NULL);
    add(g, GGML_OP_ADD, product, product);
    order->type = best->type = GGML_TYPE_I32;
    shape(order, N_EXPERTS, N_TOKENS);
    shape(best, N_USED, N_TOKENS);
    best->nb[0] = sizeof(int32_t);
    best->nb[1] = N_EXPERTS * sizeof(int32_t);
    best->view_src = order;
    best->data = sorted;
    snprintf(order->name, sizeof order->name, "ffn_moe_argsort-%d", layer);
    snprintf(best->name, sizeof best->name, "ffn_moe_topk-%d", layer);
    for (int token = 0; token < N_TOKENS; token++) {
        for (int expert = 0; expert < N_EXPERTS; expert++) {
            sorted[token][expert] = (token + expert + layer) % N_EXPERTS;
        }
    }
}

/* As the scheduler does: up to an answer of yes, compute, hand the tensor back, and on. */
static int compute_pieces(graph *g) {
    int n_pieces = 0, n_timed = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        bool is_cut = ps_recorder_ask(&g->nodes[i], true, recorder);
        n_timed += g->nodes[i].op != GGML_OP_VIEW;
        if (is_cut || i + 1 == g->n_nodes) {
            tick(n_timed);
            n_timed = 0;
            n_pieces++;
        }
        if (is_cut) {
            CHECK(ps_recorder_ask(&g->nodes[i], false, recorder));
        }
    }
    return n_pieces;
}

static const ps_expert_choice *choices(uint64_t n_expected) {
    uint64_t n_choices;
    const ps_expert_choice *found = ps_recorder_expert_choices(recorder, &n_choices);
    CHECK(n_choices == n_expected);
    return found;
}

TEST(the_choice_of_each_router_is_read) {
    begin(PS_RECORDER_EXPERTS);
    uint64_t before = ps_ticks_ordered();
    for (int layer = 0; layer < 3; layer++) {
        routed_graph(&g, layer);
        CHECK(compute_pieces(&g) == 2);
    }
    const ps_expert_choice *found = choices(3);
    const int32_t *ids = ps_recorder_expert_ids(recorder);
    for (int layer = 0; layer < 3; layer++) {
        CHECK(found[layer].layer == layer && found[layer].n_tokens == N_TOKENS && found[layer].n_used == N_USED);
        CHECK(found[layer].n_experts == N_EXPERTS && found[layer].ticks >= before);
        for (int token = 0; token < N_TOKENS; token++) {
            for (int slot = 0; slot < N_USED; slot++) {
                int32_t id = ids[found[layer].first_id + (uint64_t)(token * N_USED + slot)];
                CHECK(id == (token + slot + layer) % N_EXPERTS);
            }
        }
    }
}

TEST(each_piece_of_the_graph_is_timed) {
    begin(PS_RECORDER_EXPERTS);
    routed_graph(&g, 5);
    for (int round = 0; round < 3; round++) {
        compute_pieces(&g);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    CHECK(nodes_of(0, 3)[1].timed && !nodes_of(0, 3)[2].timed && nodes_of(1, 1)[0].timed);
    const ps_event *events = stored(3 * (3 + 2));
    for (int i = 0; i < 3 * 5; i++) {
        CHECK(events[i].graph == (i % 5 > 2) && events[i].index == (uint32_t)(i % 5 > 2 ? i % 5 - 3 : i % 5));
        CHECK(i == 0 || events[i].ticks >= events[i - 1].ticks);
    }
}

TEST(only_the_choice_itself_cuts_the_graph) {
    static const char *const others[] = {"ffn_moe_topk", "ffn_moe_topk-", "ffn_moe_topk-x", "ffn_moe_topk-3 (view)",
                                         "ffn_moe_topk--1", "ffn_moe_weights-3", "a_ffn_moe_topk-3"};
    begin(PS_RECORDER_EXPERTS);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        routed_graph(&g, 3);
        snprintf(g.nodes[2].name, sizeof g.nodes[2].name, "%s", others[i]);
        CHECK(compute_pieces(&g) == 1);
    }
    routed_graph(&g, 3);
    g.nodes[2].type = GGML_TYPE_F32; /* no ids */
    CHECK(compute_pieces(&g) == 1);
    choices(0);
}

TEST(a_layer_without_tokens_has_no_choice) {
    begin(PS_RECORDER_EXPERTS);
    routed_graph(&g, 0);
    shape(&g.nodes[2], N_USED, 0);
    CHECK(compute_pieces(&g) == 2);
    choices(0);
}

TEST(a_piece_that_another_backend_computes_is_no_graph) {
    begin(PS_RECORDER_EXPERTS);
    routed_graph(&g, 0);
    for (int i = 0; i < 3; i++) {
        ps_recorder_ask(&g.nodes[i], true, recorder);
    }
    ps_recorder_ask(&g.nodes[2], false, recorder); /* without a tick */
    ps_recorder_ask(&g.nodes[3], true, recorder);
    tick(1);
    choices(1);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    nodes_of(0, 1);
    stored(2);
}

TEST(choices_are_cleared_and_kept_as_times_are) {
    begin(PS_RECORDER_EXPERTS);
    for (int layer = 0; layer < 3; layer++) {
        routed_graph(&g, layer);
        compute_pieces(&g);
        if (layer == 0) {
            ps_recorder_keep(recorder);
        } else {
            ps_recorder_clear(recorder);
            CHECK(choices(1)[0].layer == 0);
        }
    }
    compute_pieces(&g);
    const ps_expert_choice *found = choices(2);
    CHECK(found[1].layer == 2 && found[1].first_id == N_TOKENS * N_USED);
    CHECK(ps_recorder_expert_ids(recorder)[found[1].first_id] == 2);
}

TEST(many_choices_fit) {
    begin(PS_RECORDER_EXPERTS);
    routed_graph(&g, 1);
    for (int i = 0; i < 10000; i++) {
        compute_pieces(&g);
        ps_recorder_drain(recorder);
    }
    const ps_expert_choice *found = choices(10000);
    CHECK(ps_recorder_expert_ids(recorder)[found[9999].first_id] == 1);
    CHECK(ps_recorder_dropped(recorder) == 0);
}
