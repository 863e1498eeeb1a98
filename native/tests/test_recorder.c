/* The recorder against made-up graphs. */
#include "fake_graph.h"
#include "perfsuite/clock.h"

/* ---- what a graph is ---------------------------------------------------------------------------------------------- */

static void test_a_node_is_kept_with_its_shape_and_its_sources(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    evaluate(recorder, &g, N_USUAL_TIMED);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    const ps_node *nodes = nodes_of(recorder, 0, N_USUAL);
    CHECK(strcmp(nodes[0].tensor.name, "ffn_gate-7") == 0 && strcmp(nodes[0].op, "MUL_MAT") == 0);
    CHECK(strcmp(nodes[0].tensor.type, "f32") == 0);
    CHECK(nodes[0].tensor.ne[0] == 32 && nodes[0].tensor.ne[1] == 4 && nodes[0].tensor.nb[1] == 128);
    CHECK(nodes[0].n_sources == 2 && nodes[2].n_sources == 1);
    CHECK(strcmp(nodes[0].sources[1].name, "blk.0.weight") == 0);
    CHECK(strcmp(nodes[4].sources[1].name, "ffn_gate-7") == 0);
    ps_recorder_close(recorder);
}

static void test_a_view_has_the_root_of_what_it_is_a_view_of(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    g.nodes[1].view_src = &g.nodes[0];
    evaluate(recorder, &g, N_USUAL_TIMED);
    const ps_node *nodes = nodes_of(recorder, 0, N_USUAL);
    uint64_t product = (uint64_t)(uintptr_t)&g.nodes[0], sum = (uint64_t)(uintptr_t)&g.nodes[4];
    CHECK(nodes[0].tensor.root == product && nodes[1].tensor.root == product && nodes[4].tensor.root == sum);
    CHECK(nodes[2].sources[0].root == product && nodes[4].sources[1].root == product);
    CHECK(nodes[0].sources[0].root == (uint64_t)(uintptr_t)&g.weight);
    ps_recorder_close(recorder);
}

static void test_empty_and_uncomputed_nodes_are_not_timed(void) {
    static const enum ggml_op ops[] = {GGML_OP_NONE,    GGML_OP_VIEW,      GGML_OP_RESHAPE,
                                       GGML_OP_PERMUTE, GGML_OP_TRANSPOSE, GGML_OP_ADD};
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        add(&g, ops[i], &g.weight, NULL);
    }
    add(&g, GGML_OP_ADD, &g.weight, NULL)->flags = 0;
    evaluate(recorder, &g, 1);
    const ps_node *nodes = nodes_of(recorder, 0, 7);
    for (int i = 0; i < 7; i++) {
        CHECK(nodes[i].timed == (i == 5) && !nodes[i].fused_into_previous);
    }
    ps_recorder_close(recorder);
}

static void test_sources_and_names_beyond_what_fits_are_cut(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    struct ggml_tensor *node = add(&g, GGML_OP_FLASH_ATTN_EXT, NULL, NULL);
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        node->src[s] = &g.weight;
    }
    memset(node->name, 'n', sizeof node->name - 1);
    evaluate(recorder, &g, 1);
    const ps_node *nodes = nodes_of(recorder, 0, 1);
    CHECK(nodes[0].n_sources == PS_MAX_SOURCES);
    CHECK(strlen(nodes[0].tensor.name) == PS_NAME_BYTES - 1 && strlen(nodes[0].op) == PS_OP_BYTES - 1);
    ps_recorder_close(recorder);
}

static void test_a_graph_that_nobody_computes_is_kept(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    struct ggml_tensor *norm = add(&g, GGML_OP_RMS_NORM, &g.weight, NULL);
    add(&g, GGML_OP_MUL, norm, &g.weight);
    struct ggml_tensor *listed[] = {&g.nodes[0], &g.nodes[1]};
    CHECK(ps_recorder_add_graph(recorder, listed, 2) && ps_recorder_add_graph(recorder, listed, 1));
    const ps_node *nodes = nodes_of(recorder, 0, 2);
    CHECK(nodes[0].timed && strcmp(nodes[0].op, "RMS_NORM") == 0 && strcmp(nodes[1].op, "MUL") == 0);
    nodes_of(recorder, 1, 1);
    CHECK(!ps_recorder_add_graph(recorder, listed, 0));
    CHECK(!ps_recorder_add_graph(recorder, NULL, INT32_MAX));
    ps_recorder_close(recorder);
}

static void test_a_graph_that_is_not_there_has_no_nodes(void) {
    int32_t n_nodes = 5;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    CHECK(ps_recorder_nodes(recorder, 0, &n_nodes) == NULL && n_nodes == 0);
    CHECK(ps_recorder_nodes(recorder, -1, &n_nodes) == NULL && n_nodes == 0);
    ps_recorder_close(recorder);
    ps_recorder_close(NULL);
}

/* ---- fusing ------------------------------------------------------------------------------------------------------- */

typedef struct pair {
    graph g;
    struct ggml_tensor *input, *norm, *mul;
} pair;

static void usual_pair(pair *p) {
    empty_graph(&p->g);
    p->input = add(&p->g, GGML_OP_ADD, &p->g.weight, &p->g.weight);
    p->norm = add(&p->g, GGML_OP_RMS_NORM, p->input, NULL);
    p->mul = add(&p->g, GGML_OP_MUL, p->norm, &p->g.weight);
}

static bool is_fused(pair *p) {
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    evaluate(recorder, &p->g, 1);
    const ps_node *nodes = nodes_of(recorder, 0, p->g.n_nodes);
    bool fused = nodes[2].fused_into_previous != 0;
    CHECK(nodes[1].timed && !nodes[1].fused_into_previous);
    CHECK(nodes[2].timed == !(fused || !(p->mul->flags & GGML_TENSOR_FLAG_COMPUTE)));
    ps_recorder_close(recorder);
    return fused;
}

static void test_a_norm_and_its_weight_are_one_operator(void) {
    pair p;
    usual_pair(&p);
    CHECK(is_fused(&p));
    p.mul->src[0] = &p.g.weight;
    p.mul->src[1] = p.norm;
    CHECK(is_fused(&p));
}

static void test_a_norm_of_another_type_is_not_fused(void) {
    pair p;
    usual_pair(&p);
    p.g.weight.type = GGML_TYPE_F16;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.input->type = GGML_TYPE_F16;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.mul->type = GGML_TYPE_F16;
    CHECK(!is_fused(&p));
}

static void test_a_weight_with_gaps_or_of_another_width_is_not_fused(void) {
    pair p;
    usual_pair(&p);
    p.g.weight.nb[0] = 8;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    shape(&p.g.weight, 1, 1);
    CHECK(!is_fused(&p));
    usual_pair(&p);
    shape(p.mul, 32, 8);
    CHECK(!is_fused(&p));
}

static void test_a_norm_that_somebody_else_needs_is_not_fused(void) {
    pair p;
    usual_pair(&p);
    add(&p.g, GGML_OP_ADD, p.norm, p.input);
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.mul->src[1] = p.norm;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.norm->flags |= GGML_TENSOR_FLAG_OUTPUT;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.norm->view_src = p.input;
    CHECK(!is_fused(&p));
}

static void test_a_product_of_something_else_or_that_nobody_wants_is_not_fused(void) {
    pair p;
    usual_pair(&p);
    p.mul->src[0] = p.input;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.mul->flags = 0;
    CHECK(!is_fused(&p));
    usual_pair(&p);
    p.mul->op = GGML_OP_ADD;
    CHECK(!is_fused(&p));
}

static void test_a_norm_at_the_end_of_a_graph_is_alone(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    add(&g, GGML_OP_RMS_NORM, &g.weight, NULL);
    evaluate(recorder, &g, 1);
    CHECK(nodes_of(recorder, 0, 1)[0].timed);
    ps_recorder_close(recorder);
}

/* ---- what other releases report ------------------------------------------------------------------------------------ */

/* The usual graph, whose view is in the middle of it: all of its nodes report, or all that are computed. */
static void test_what_older_releases_report_are_the_same_operators(void) {
    for (int n_reports = N_USUAL_TIMED; n_reports <= N_USUAL; n_reports++) {
        graph g;
        ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
        usual_graph(&g);
        for (int i = 0; i < 2; i++) {
            evaluate(recorder, &g, n_reports);
        }
        bool has_views = n_reports == N_USUAL;
        uint64_t n_stored = 2 * (1 + N_USUAL_TIMED + (uint64_t)has_views);
        const ps_event *events = stored(recorder, n_stored);
        CHECK(nodes_of(recorder, 0, N_USUAL)[3].fused_into_previous && ps_recorder_n_graphs(recorder) == 1);
        uint32_t index = 0;
        for (uint64_t i = 0; i < n_stored; i++) {
            bool is_view = has_views && i % (n_stored / 2) == 2;
            CHECK(events[i].index == (is_view ? PS_EVENT_NOTHING : index));
            index = is_view ? index : (index + 1) % (N_USUAL_TIMED + 1);
        }
        ps_recorder_close(recorder);
    }
}

static void test_reports_that_fit_no_release_are_stored_as_they_come(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    evaluate(recorder, &g, N_USUAL_TIMED - 1);
    evaluate(recorder, &g, N_USUAL + 1);
    const ps_event *events = stored(recorder, 2 + N_USUAL_TIMED - 1 + N_USUAL + 1);
    CHECK(events[2].index == 2 && events[3].index == 0 && events[N_USUAL + 4].index == N_USUAL + 1);
    ps_recorder_close(recorder);
}

/* ---- which graph it is -------------------------------------------------------------------------------------------- */

static void test_the_same_graph_is_known_again(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    for (int i = 0; i < 20; i++) {
        evaluate(recorder, &g, N_USUAL_TIMED);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    stored(recorder, 20 * (N_USUAL_TIMED + 1));
    ps_recorder_close(recorder);
}

static void test_another_shape_operator_or_place_is_another_graph(void) {
    graph g, elsewhere;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    usual_graph(&elsewhere);
    evaluate(recorder, &g, N_USUAL_TIMED);
    for (int d = 0; d < 4; d++) {
        g.nodes[0].ne[d]++;
        evaluate(recorder, &g, N_USUAL_TIMED);
        CHECK(ps_recorder_n_graphs(recorder) == d + 2);
    }
    CHECK(nodes_of(recorder, 4, N_USUAL)[0].tensor.ne[3] == 2);
    g.nodes[4].op = GGML_OP_MUL_MAT;
    evaluate(recorder, &g, N_USUAL_TIMED);
    evaluate(recorder, &elsewhere, N_USUAL_TIMED);
    g.n_nodes--;
    evaluate(recorder, &g, N_USUAL_TIMED - 1);
    CHECK(ps_recorder_n_graphs(recorder) == 8);
    ps_recorder_close(recorder);
}

static void test_two_graphs_may_alternate(void) {
    graph prefill, decode;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&prefill);
    usual_graph(&decode);
    add(&decode, GGML_OP_ADD, &decode.nodes[4], &decode.nodes[0]);
    for (int i = 0; i < 6; i++) {
        evaluate(recorder, i % 2 ? &decode : &prefill, N_USUAL_TIMED + i % 2);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    const ps_event *events = stored(recorder, 3 * (N_USUAL_TIMED + 1 + N_USUAL_TIMED + 2));
    for (int i = 0; i < 6; i++) {
        for (uint32_t index = 0; index <= N_USUAL_TIMED + (uint32_t)(i % 2); index++, events++) {
            CHECK(events->graph == (uint32_t)(i % 2) && events->index == index);
        }
    }
    ps_recorder_close(recorder);
}

enum { N_LARGE = 400 };

/* A graph of many sums, as large as a few layers are. */
static void ask_large(ps_recorder *recorder, struct ggml_tensor *nodes, int n_nodes) {
    for (int i = 0; i < n_nodes; i++) {
        CHECK(!ps_recorder_ask(&nodes[i], true, recorder));
    }
    tick(recorder, n_nodes);
}

static void test_large_graphs_are_known_again_and_told_apart(void) {
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    struct ggml_tensor *nodes = calloc(N_LARGE, sizeof *nodes);
    CHECK(nodes != NULL);
    for (int i = 0; i < N_LARGE; i++) {
        nodes[i].op = GGML_OP_ADD;
        nodes[i].flags = GGML_TENSOR_FLAG_COMPUTE;
        shape(&nodes[i], 32, 4);
    }
    for (int round = 0; round < 3; round++) {
        ask_large(recorder, nodes, N_LARGE);
        CHECK(ps_recorder_n_graphs(recorder) == 1);
    }
    nodes[N_LARGE - 1].ne[1]++; /* more logits */
    ask_large(recorder, nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    nodes[5].ne[1]++; /* a longer context */
    ask_large(recorder, nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 3);
    ask_large(recorder, nodes, N_LARGE - 100);
    ask_large(recorder, nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 4);
    ps_recorder_close(recorder);
    free(nodes);
}

static void test_graphs_beyond_the_table_count_as_dropped(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    add(&g, GGML_OP_ADD, &g.weight, &g.weight);
    for (int i = 0; i < 1024 + 3; i++) {
        g.nodes[0].ne[1] = i + 1;
        evaluate(recorder, &g, 1);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1024);
    CHECK(ps_recorder_dropped(recorder) == 3);
    stored(recorder, 2 * 1024);
    ps_recorder_close(recorder);
}

static void test_a_graph_with_too_many_nodes_is_not_kept(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    for (int i = 0; i < 65536 + 1; i++) {
        ps_recorder_ask(&g.nodes[0], true, recorder);
    }
    tick(recorder, 3);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
    stored(recorder, 0);
    evaluate(recorder, &g, N_USUAL_TIMED);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    ps_recorder_close(recorder);
}

/* ---- times -------------------------------------------------------------------------------------------------------- */

static void test_an_evaluation_is_its_launch_and_one_end_for_each_timed_node(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    uint64_t before = ps_ticks_ordered();
    evaluate(recorder, &g, N_USUAL_TIMED);
    uint64_t after = ps_ticks_ordered();
    const ps_event *events = stored(recorder, N_USUAL_TIMED + 1);
    for (uint32_t i = 0; i <= N_USUAL_TIMED; i++) {
        CHECK(events[i].index == i && events[i].graph == 0);
        CHECK(events[i].ticks >= (i ? events[i - 1].ticks : before) && events[i].ticks <= after);
    }
    ps_recorder_close(recorder);
}

static void test_events_that_find_the_ring_full_are_counted(void) {
    graph g;
    ps_recorder *recorder = ps_recorder_open(PS_RECORDER_CALLBACK, 64, 1);
    CHECK(recorder != NULL);
    usual_graph(&g);
    for (int i = 0; i < 20; i++) {
        evaluate(recorder, &g, N_USUAL_TIMED);
    }
    CHECK(ps_recorder_dropped(recorder) == 20 * (N_USUAL_TIMED + 1) - 64);
    stored(recorder, 64);
    evaluate(recorder, &g, N_USUAL_TIMED);
    stored(recorder, 64 + N_USUAL_TIMED + 1);
    CHECK(ps_recorder_dropped(recorder) == 16);
    ps_recorder_close(recorder);
}

static void test_drains_between_evaluations_change_nothing(void) {
    graph g;
    ps_recorder *recorder = ps_recorder_open(PS_RECORDER_CALLBACK, 64, 1);
    CHECK(recorder != NULL);
    usual_graph(&g);
    for (uint64_t i = 1; i <= 3000; i++) {
        evaluate(recorder, &g, N_USUAL_TIMED);
        const ps_event *events = stored(recorder, i * (N_USUAL_TIMED + 1));
        CHECK(events[(i - 1) * (N_USUAL_TIMED + 1)].index == 0);
    }
    CHECK(ps_recorder_dropped(recorder) == 0 && ps_recorder_n_graphs(recorder) == 1);
    ps_recorder_close(recorder);
}

static void test_clearing_forgets_times_and_keeps_graphs(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    evaluate(recorder, &g, N_USUAL_TIMED);
    stored(recorder, N_USUAL_TIMED + 1);
    evaluate(recorder, &g, N_USUAL_TIMED);
    ps_recorder_clear(recorder);
    stored(recorder, 0);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    evaluate(recorder, &g, N_USUAL_TIMED);
    CHECK(stored(recorder, N_USUAL_TIMED + 1)[0].graph == 0);
    ps_recorder_close(recorder);
}

static void test_what_was_kept_survives_a_clear(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    evaluate(recorder, &g, N_USUAL_TIMED);
    ps_recorder_keep(recorder);
    evaluate(recorder, &g, N_USUAL_TIMED);
    ps_recorder_clear(recorder);
    stored(recorder, N_USUAL_TIMED + 1);
    evaluate(recorder, &g, N_USUAL_TIMED);
    stored(recorder, 2 * (N_USUAL_TIMED + 1));
    ps_recorder_close(recorder);
}

static void test_the_naive_recorder_answers_yes_and_stamps_each_answer(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CB_EVAL);
    usual_graph(&g);
    for (int i = 0; i < N_USUAL; i++) {
        CHECK(ps_recorder_ask(&g.nodes[i], true, recorder));
        CHECK(ps_recorder_ask(&g.nodes[i], false, recorder));
    }
    stored(recorder, N_USUAL);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
    ps_recorder_close(recorder);
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

/* As a scheduler does: nodes are asked for until one ends a group, and that one is told again once it is computed. */
static int compute_groups(ps_recorder *recorder, graph *g) {
    int n_groups = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (ps_recorder_ask(&g->nodes[i], true, recorder)) {
            CHECK(ps_recorder_ask(&g->nodes[i], false, recorder));
            n_groups++;
        }
    }
    return n_groups;
}

static void test_without_groups_every_node_ends_one(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&g);
    CHECK(compute_groups(recorder, &g) == N_USUAL);
    CHECK(ps_recorder_n_graphs(recorder) == 0); /* the evaluation is not over */
    ps_recorder_end_evaluation(recorder);
    const ps_event *events = stored(recorder, N_USUAL + 1);
    for (uint32_t i = 0; i <= N_USUAL; i++) {
        CHECK(events[i].graph == 0 && events[i].index == i);
        CHECK(i == 0 || events[i].ticks >= events[i - 1].ticks);
    }
    ps_recorder_end_evaluation(recorder); /* there is no other */
    stored(recorder, N_USUAL + 1);
    ps_recorder_close(recorder);
}

static void test_a_group_ends_at_its_last_node(void) {
    static const uint8_t ends[] = {1, 0, 0, 1};
    static const uint32_t last[] = {0, 1, 4, 5}; /* the launch, then what was asked for by the end of each group */
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&g);
    ps_recorder_set_groups(recorder, ends, 4);
    CHECK(compute_groups(recorder, &g) == 3);
    ps_recorder_end_evaluation(recorder);
    const ps_event *events = stored(recorder, 4);
    for (int i = 0; i < 4; i++) {
        CHECK(events[i].graph == 0 && events[i].index == last[i]);
    }
    CHECK(nodes_of(recorder, 0, N_USUAL)[2].tensor.ne[0] == 32);
    ps_recorder_close(recorder);
}

static void test_nodes_behind_the_last_group_have_no_end(void) {
    static const uint8_t ends[N_USUAL] = {0, 1, 0, 0, 0};
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&g);
    ps_recorder_set_groups(recorder, ends, N_USUAL);
    CHECK(compute_groups(recorder, &g) == 1);
    ps_recorder_end_evaluation(recorder);
    CHECK(stored(recorder, 2)[1].index == 2);
    nodes_of(recorder, 0, N_USUAL);
    ps_recorder_close(recorder);
}

static void test_the_graphs_of_an_evaluation_are_one(void) {
    static const uint8_t ends[] = {1, 1, 1, 1, 0, 0, 1, 1, 1, 1};
    graph first, second;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&first);
    usual_graph(&second);
    ps_recorder_set_groups(recorder, ends, 10);
    for (int i = 0; i < 3; i++) {
        CHECK(compute_groups(recorder, &first) == 4 && compute_groups(recorder, &second) == 4);
        ps_recorder_end_evaluation(recorder);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    nodes_of(recorder, 0, 2 * N_USUAL);
    const ps_event *events = stored(recorder, 3 * 9);
    CHECK(events[4].index == 4 && events[5].index == 7 && events[9].index == 0 && events[26].index == 10);
    ps_recorder_close(recorder);
}

static void test_groups_may_change_from_one_evaluation_to_the_next(void) {
    static const uint8_t prefill_ends[] = {0, 0}, decode_ends[] = {1, 0};
    graph prefill, decode;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&prefill);
    usual_graph(&decode);
    for (int i = 0; i < 4; i++) {
        ps_recorder_set_groups(recorder, i % 2 ? decode_ends : prefill_ends, 2);
        CHECK(compute_groups(recorder, i % 2 ? &decode : &prefill) == 3 + i % 2);
        ps_recorder_end_evaluation(recorder);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    const ps_event *events = stored(recorder, 4 + 5 + 4 + 5);
    CHECK(events[0].graph == 0 && events[1].index == 3 && events[4].graph == 1 && events[5].index == 1);
    CHECK(events[9].graph == 0 && events[13].graph == 1 && ps_recorder_dropped(recorder) == 0);
    ps_recorder_close(recorder);
}

static void test_a_node_of_a_group_is_not_fused_away(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&g);
    compute_groups(recorder, &g);
    ps_recorder_end_evaluation(recorder);
    const ps_node *nodes = nodes_of(recorder, 0, N_USUAL);
    CHECK(nodes[2].timed && nodes[3].timed && !nodes[3].fused_into_previous && !nodes[1].timed);
    ps_recorder_close(recorder);
}

static void test_an_evaluation_with_too_many_nodes_has_no_groups(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_GROUPS);
    usual_graph(&g);
    for (int i = 0; i <= (1 << 16) / N_USUAL; i++) {
        compute_groups(recorder, &g);
    }
    ps_recorder_end_evaluation(recorder);
    stored(recorder, 0);
    CHECK(ps_recorder_n_graphs(recorder) == 0 && ps_recorder_dropped(recorder) == 1);
    compute_groups(recorder, &g);
    ps_recorder_end_evaluation(recorder);
    stored(recorder, N_USUAL + 1);
    ps_recorder_close(recorder);
}

static void test_the_end_of_an_evaluation_is_for_groups_alone(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    ask_all(recorder, &g);
    ps_recorder_end_evaluation(recorder);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
    tick(recorder, N_USUAL_TIMED);
    stored(recorder, N_USUAL_TIMED + 1);
    ps_recorder_close(recorder);
}

/* ---- the injected slowdown ---------------------------------------------------------------------------------------- */

/* Far longer than any test may run: an operator that should not wait and does is a test that does not end. */
static const int64_t forever_ns = INT64_C(1000000000000);

static void test_an_injected_delay_slows_the_named_operator(void) {
    static const char *const names[] = {"ADD", "l_out"};
    const uint64_t extra_ticks = 3000000;
    for (int i = 0; i < 2; i++) {
        graph g;
        ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
        ps_recorder_inject(recorder, names[i], 0.0, (int64_t)extra_ticks, 1.0);
        usual_graph(&g);
        evaluate(recorder, &g, N_USUAL_TIMED);
        const ps_event *events = stored(recorder, N_USUAL_TIMED + 1);
        CHECK(events[3].ticks - events[2].ticks >= extra_ticks);
        ps_recorder_close(recorder);
    }
}

static void test_an_injected_ratio_lengthens_by_the_operators_own_time(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    ps_recorder_inject(recorder, "MUL_MAT", 3.0, 0, 1.0);
    usual_graph(&g);
    ask_all(recorder, &g);
    uint64_t begin = ps_ticks_ordered();
    while (ps_ticks_ordered() - begin < 1000000) {
    }
    tick(recorder, N_USUAL_TIMED);
    const ps_event *events = stored(recorder, N_USUAL_TIMED + 1);
    CHECK(events[1].ticks - begin >= 4 * 1000000);
    ps_recorder_close(recorder);
}

static void test_an_injected_delay_slows_nothing_else(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    ps_recorder_inject(recorder, "ADD", 1.0, forever_ns, 1.0);
    ask_all(recorder, &g);
    tick(recorder, N_USUAL_TIMED - 1); /* all but the one that is named */
    stored(recorder, N_USUAL_TIMED);
    ps_recorder_close(recorder);
}

static void test_a_name_is_the_whole_role_and_nothing_but_it(void) {
    static const char *const names[] = {"MUL", "VIEW", "ffn", "ffn_gate-7", "ffn_gate-", "add", "gate", "blk.0.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        graph g;
        ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
        ps_recorder_inject(recorder, names[i], 1.0, forever_ns, 1.0);
        usual_graph(&g);
        evaluate(recorder, &g, N_USUAL_TIMED);
        stored(recorder, N_USUAL_TIMED + 1);
        ps_recorder_close(recorder);
    }
}

/* ---- entries of operators ----------------------------------------------------------------------------------------- */

/* The first sight of a graph cannot tell which node is its last; from then on its first entry is kept. */
static void test_the_first_entry_is_kept_once_a_graph_is_known(void) {
    graph g;
    ps_recorder *recorder = opened(PS_RECORDER_CALLBACK);
    usual_graph(&g);
    ps_recorder_watch_entries(recorder);
    uint64_t others[3];
    for (int round = 0; round < 3; round++) {
        ask_all(recorder, &g);
        ps_recorder_entry(1, &g.nodes[0]);
        others[round] = ps_ticks_ordered();
        ps_recorder_entry(0, &g.nodes[0]);
        tick(recorder, 1);
        ps_recorder_entry(0, &g.nodes[4]);
        tick(recorder, N_USUAL_TIMED - 1);
    }
    const ps_event *events = stored(recorder, 3 * (N_USUAL_TIMED + 1) + 2);
    int n_entries = 0;
    for (int i = 0; i < 3 * (N_USUAL_TIMED + 1) + 2; i++) {
        if (events[i].index == PS_EVENT_FIRST_START) {
            CHECK(events[i + 1].index == 0 && events[i + 1].ticks <= events[i].ticks);
            CHECK(events[i].ticks <= events[i + 2].ticks);
            CHECK(events[i].ticks >= others[++n_entries]);
        }
    }
    CHECK(n_entries == 2);
    ps_recorder_close(recorder);
}

int main(void) {
    test_a_node_is_kept_with_its_shape_and_its_sources();
    test_a_view_has_the_root_of_what_it_is_a_view_of();
    test_empty_and_uncomputed_nodes_are_not_timed();
    test_sources_and_names_beyond_what_fits_are_cut();
    test_a_graph_that_is_not_there_has_no_nodes();
    test_a_norm_and_its_weight_are_one_operator();
    test_a_norm_of_another_type_is_not_fused();
    test_a_weight_with_gaps_or_of_another_width_is_not_fused();
    test_a_norm_that_somebody_else_needs_is_not_fused();
    test_a_product_of_something_else_or_that_nobody_wants_is_not_fused();
    test_a_graph_that_nobody_computes_is_kept();
    test_a_norm_at_the_end_of_a_graph_is_alone();
    test_what_older_releases_report_are_the_same_operators();
    test_reports_that_fit_no_release_are_stored_as_they_come();
    test_the_same_graph_is_known_again();
    test_another_shape_operator_or_place_is_another_graph();
    test_two_graphs_may_alternate();
    test_large_graphs_are_known_again_and_told_apart();
    test_graphs_beyond_the_table_count_as_dropped();
    test_a_graph_with_too_many_nodes_is_not_kept();
    test_an_evaluation_is_its_launch_and_one_end_for_each_timed_node();
    test_events_that_find_the_ring_full_are_counted();
    test_drains_between_evaluations_change_nothing();
    test_clearing_forgets_times_and_keeps_graphs();
    test_what_was_kept_survives_a_clear();
    test_the_naive_recorder_answers_yes_and_stamps_each_answer();
    test_without_groups_every_node_ends_one();
    test_a_group_ends_at_its_last_node();
    test_nodes_behind_the_last_group_have_no_end();
    test_the_graphs_of_an_evaluation_are_one();
    test_groups_may_change_from_one_evaluation_to_the_next();
    test_a_node_of_a_group_is_not_fused_away();
    test_an_evaluation_with_too_many_nodes_has_no_groups();
    test_the_end_of_an_evaluation_is_for_groups_alone();
    test_an_injected_delay_slows_the_named_operator();
    test_an_injected_ratio_lengthens_by_the_operators_own_time();
    test_an_injected_delay_slows_nothing_else();
    test_a_name_is_the_whole_role_and_nothing_but_it();
    test_the_first_entry_is_kept_once_a_graph_is_known();
    return 0;
}
