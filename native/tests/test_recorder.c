/* The recorder against made-up graphs. */
#include "fake_graph.h"
#include "perfsuite/clock.h"

/* ---- what a graph is ---------------------------------------------------------------------------------------------- */

TEST(a_node_is_kept_with_its_shape_and_its_sources) {
    begin(PS_RECORDER_CALLBACK);
    evaluate(&g, N_USUAL_TIMED);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    const ps_node *nodes = nodes_of(0, N_USUAL);
    CHECK(strcmp(nodes[0].tensor.name, "ffn_gate-7") == 0 && strcmp(nodes[0].op, "MUL_MAT") == 0);
    CHECK(strcmp(nodes[0].tensor.type, "f32") == 0);
    CHECK(nodes[0].tensor.ne[0] == 32 && nodes[0].tensor.ne[1] == 4 && nodes[0].tensor.nb[1] == 128);
    CHECK(nodes[0].n_sources == 2 && nodes[2].n_sources == 1);
    CHECK(strcmp(nodes[0].sources[1].name, "blk.0.weight") == 0);
    CHECK(strcmp(nodes[4].sources[1].name, "ffn_gate-7") == 0);
}

TEST(a_view_has_the_root_of_what_it_is_a_view_of) {
    begin(PS_RECORDER_CALLBACK);
    g.nodes[1].view_src = &g.nodes[0];
    evaluate(&g, N_USUAL_TIMED);
    const ps_node *nodes = nodes_of(0, N_USUAL);
    uint64_t product = (uint64_t)(uintptr_t)&g.nodes[0], sum = (uint64_t)(uintptr_t)&g.nodes[4];
    CHECK(nodes[0].tensor.root == product && nodes[1].tensor.root == product && nodes[4].tensor.root == sum);
    CHECK(nodes[2].sources[0].root == product && nodes[4].sources[1].root == product);
    CHECK(nodes[0].sources[0].root == (uint64_t)(uintptr_t)&g.weight);
}

TEST(empty_and_uncomputed_nodes_are_not_timed) {
    static const enum ggml_op ops[] = {GGML_OP_NONE,    GGML_OP_VIEW,      GGML_OP_RESHAPE,
                                       GGML_OP_PERMUTE, GGML_OP_TRANSPOSE, GGML_OP_ADD};
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        add(&g, ops[i], &g.weight, NULL);
    }
    add(&g, GGML_OP_ADD, &g.weight, NULL)->flags = 0;
    evaluate(&g, 1);
    const ps_node *nodes = nodes_of(0, 7);
    for (int i = 0; i < 7; i++) {
        CHECK(nodes[i].timed == (i == 5) && !nodes[i].fused_into_previous);
    }
}

TEST(sources_and_names_beyond_what_fits_are_cut) {
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    struct ggml_tensor *node = add(&g, GGML_OP_FLASH_ATTN_EXT, NULL, NULL);
    for (int s = 0; s < GGML_MAX_SRC; s++) {
        node->src[s] = &g.weight;
    }
    memset(node->name, 'n', sizeof node->name - 1);
    evaluate(&g, 1);
    const ps_node *nodes = nodes_of(0, 1);
    CHECK(nodes[0].n_sources == PS_MAX_SOURCES);
    CHECK(strlen(nodes[0].tensor.name) == PS_NAME_BYTES - 1 && strlen(nodes[0].op) == PS_OP_BYTES - 1);
}

TEST(a_graph_that_nobody_computes_is_kept) {
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    struct ggml_tensor *norm = add(&g, GGML_OP_RMS_NORM, &g.weight, NULL);
    add(&g, GGML_OP_MUL, norm, &g.weight);
    struct ggml_tensor *listed[] = {&g.nodes[0], &g.nodes[1]};
    CHECK(ps_recorder_add_graph(recorder, listed, 2) && ps_recorder_add_graph(recorder, listed, 1));
    const ps_node *nodes = nodes_of(0, 2);
    CHECK(nodes[0].timed && strcmp(nodes[0].op, "RMS_NORM") == 0 && strcmp(nodes[1].op, "MUL") == 0);
    nodes_of(1, 1);
    CHECK(!ps_recorder_add_graph(recorder, listed, 0));
    CHECK(!ps_recorder_add_graph(recorder, NULL, INT32_MAX));
}

TEST(a_graph_that_is_not_there_has_no_nodes) {
    int32_t n_nodes = 5;
    begin(PS_RECORDER_CALLBACK);
    CHECK(ps_recorder_nodes(recorder, 0, &n_nodes) == NULL && n_nodes == 0);
    CHECK(ps_recorder_nodes(recorder, -1, &n_nodes) == NULL && n_nodes == 0);
    ps_recorder_close(NULL);
}

/* ---- fusing ------------------------------------------------------------------------------------------------------- */

static struct ggml_tensor *input, *norm, *mul;

static void usual_pair(void) {
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    input = add(&g, GGML_OP_ADD, &g.weight, &g.weight);
    norm = add(&g, GGML_OP_RMS_NORM, input, NULL);
    mul = add(&g, GGML_OP_MUL, norm, &g.weight);
}

static bool is_fused(void) {
    evaluate(&g, 1);
    const ps_node *nodes = nodes_of(0, g.n_nodes);
    bool fused = nodes[2].fused_into_previous != 0;
    CHECK(nodes[1].timed && !nodes[1].fused_into_previous);
    CHECK(nodes[2].timed == !(fused || !(mul->flags & GGML_TENSOR_FLAG_COMPUTE)));
    return fused;
}

TEST(a_norm_and_its_weight_are_one_operator) {
    usual_pair();
    CHECK(is_fused());
    usual_pair();
    mul->src[0] = &g.weight;
    mul->src[1] = norm;
    CHECK(is_fused());
}

TEST(a_norm_of_another_type_is_not_fused) {
    usual_pair();
    g.weight.type = GGML_TYPE_F16;
    CHECK(!is_fused());
    usual_pair();
    input->type = GGML_TYPE_F16;
    CHECK(!is_fused());
    usual_pair();
    mul->type = GGML_TYPE_F16;
    CHECK(!is_fused());
}

TEST(a_weight_with_gaps_or_of_another_width_is_not_fused) {
    usual_pair();
    g.weight.nb[0] = 8;
    CHECK(!is_fused());
    usual_pair();
    shape(&g.weight, 1, 1);
    CHECK(!is_fused());
    usual_pair();
    shape(mul, 32, 8);
    CHECK(!is_fused());
}

TEST(a_norm_that_somebody_else_needs_is_not_fused) {
    usual_pair();
    add(&g, GGML_OP_ADD, norm, input);
    CHECK(!is_fused());
    usual_pair();
    mul->src[1] = norm;
    CHECK(!is_fused());
    usual_pair();
    norm->flags |= GGML_TENSOR_FLAG_OUTPUT;
    CHECK(!is_fused());
    usual_pair();
    norm->view_src = input;
    CHECK(!is_fused());
}

TEST(a_product_of_something_else_or_that_nobody_wants_is_not_fused) {
    usual_pair();
    mul->src[0] = input;
    CHECK(!is_fused());
    usual_pair();
    mul->flags = 0;
    CHECK(!is_fused());
    usual_pair();
    mul->op = GGML_OP_ADD;
    CHECK(!is_fused());
}

TEST(a_norm_at_the_end_of_a_graph_is_alone) {
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    add(&g, GGML_OP_RMS_NORM, &g.weight, NULL);
    evaluate(&g, 1);
    CHECK(nodes_of(0, 1)[0].timed);
}

/* ---- what other releases report ------------------------------------------------------------------------------------ */

/* The usual graph, whose view is in the middle of it: all of its nodes report, or all that are computed. */
TEST(what_older_releases_report_are_the_same_operators) {
    for (int n_reports = N_USUAL_TIMED; n_reports <= N_USUAL; n_reports++) {
        begin(PS_RECORDER_CALLBACK);
        for (int i = 0; i < 2; i++) {
            evaluate(&g, n_reports);
        }
        bool has_views = n_reports == N_USUAL;
        uint64_t n_stored = 2 * (1 + N_USUAL_TIMED + (uint64_t)has_views);
        const ps_event *events = stored(n_stored);
        CHECK(nodes_of(0, N_USUAL)[3].fused_into_previous && ps_recorder_n_graphs(recorder) == 1);
        uint32_t index = 0;
        for (uint64_t i = 0; i < n_stored; i++) {
            bool is_view = has_views && i % (n_stored / 2) == 2;
            CHECK(events[i].index == (is_view ? PS_EVENT_NOTHING : index));
            index = is_view ? index : (index + 1) % (N_USUAL_TIMED + 1);
        }
    }
}

TEST(reports_that_fit_no_release_are_stored_as_they_come) {
    begin(PS_RECORDER_CALLBACK);
    evaluate(&g, N_USUAL_TIMED - 1);
    evaluate(&g, N_USUAL + 1);
    const ps_event *events = stored(2 + N_USUAL_TIMED - 1 + N_USUAL + 1);
    CHECK(events[2].index == 2 && events[3].index == 0 && events[N_USUAL + 4].index == N_USUAL + 1);
}

/* ---- which graph it is -------------------------------------------------------------------------------------------- */

TEST(the_same_graph_is_known_again) {
    begin(PS_RECORDER_CALLBACK);
    for (int i = 0; i < 20; i++) {
        evaluate(&g, N_USUAL_TIMED);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    stored(20 * (N_USUAL_TIMED + 1));
}

TEST(another_shape_operator_or_place_is_another_graph) {
    graph elsewhere;
    begin(PS_RECORDER_CALLBACK);
    usual_graph(&elsewhere);
    evaluate(&g, N_USUAL_TIMED);
    for (int d = 0; d < 4; d++) {
        g.nodes[0].ne[d]++;
        evaluate(&g, N_USUAL_TIMED);
        CHECK(ps_recorder_n_graphs(recorder) == d + 2);
    }
    CHECK(nodes_of(4, N_USUAL)[0].tensor.ne[3] == 2);
    g.nodes[4].op = GGML_OP_MUL_MAT;
    evaluate(&g, N_USUAL_TIMED);
    evaluate(&elsewhere, N_USUAL_TIMED);
    g.n_nodes--;
    evaluate(&g, N_USUAL_TIMED - 1);
    CHECK(ps_recorder_n_graphs(recorder) == 8);
}

TEST(two_graphs_may_alternate) {
    graph prefill, decode;
    begin(PS_RECORDER_CALLBACK);
    usual_graph(&prefill);
    usual_graph(&decode);
    add(&decode, GGML_OP_ADD, &decode.nodes[4], &decode.nodes[0]);
    for (int i = 0; i < 6; i++) {
        evaluate(i % 2 ? &decode : &prefill, N_USUAL_TIMED + i % 2);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    const ps_event *events = stored(3 * (N_USUAL_TIMED + 1 + N_USUAL_TIMED + 2));
    for (int i = 0; i < 6; i++) {
        for (uint32_t index = 0; index <= N_USUAL_TIMED + (uint32_t)(i % 2); index++, events++) {
            CHECK(events->graph == (uint32_t)(i % 2) && events->index == index);
        }
    }
}

enum { N_LARGE = 400 };

/* A graph of many sums, as large as a few layers are. */
static void ask_large(struct ggml_tensor *nodes, int n_nodes) {
    for (int i = 0; i < n_nodes; i++) {
        CHECK(!ps_recorder_ask(&nodes[i], true, recorder));
    }
    tick(n_nodes);
}

TEST(large_graphs_are_known_again_and_told_apart) {
    begin(PS_RECORDER_CALLBACK);
    struct ggml_tensor *nodes = calloc(N_LARGE, sizeof *nodes);
    CHECK(nodes != NULL);
    for (int i = 0; i < N_LARGE; i++) {
        nodes[i].op = GGML_OP_ADD;
        nodes[i].flags = GGML_TENSOR_FLAG_COMPUTE;
        shape(&nodes[i], 32, 4);
    }
    for (int round = 0; round < 3; round++) {
        ask_large(nodes, N_LARGE);
        CHECK(ps_recorder_n_graphs(recorder) == 1);
    }
    nodes[N_LARGE - 1].ne[1]++; /* more logits */
    ask_large(nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    nodes[5].ne[1]++; /* a longer context */
    ask_large(nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 3);
    ask_large(nodes, N_LARGE - 100);
    ask_large(nodes, N_LARGE);
    CHECK(ps_recorder_n_graphs(recorder) == 4);
    free(nodes);
}

TEST(graphs_beyond_the_table_count_as_dropped) {
    begin(PS_RECORDER_CALLBACK);
    empty_graph(&g);
    add(&g, GGML_OP_ADD, &g.weight, &g.weight);
    for (int i = 0; i < 1024 + 3; i++) {
        g.nodes[0].ne[1] = i + 1;
        evaluate(&g, 1);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1024);
    CHECK(ps_recorder_dropped(recorder) == 3);
    stored(2 * 1024);
}

TEST(a_graph_with_too_many_nodes_is_not_kept) {
    begin(PS_RECORDER_CALLBACK);
    for (int i = 0; i < 65536 + 1; i++) {
        ps_recorder_ask(&g.nodes[0], true, recorder);
    }
    tick(3);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
    stored(0);
    evaluate(&g, N_USUAL_TIMED);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
}

/* ---- times -------------------------------------------------------------------------------------------------------- */

TEST(an_evaluation_is_its_launch_and_one_end_for_each_timed_node) {
    begin(PS_RECORDER_CALLBACK);
    uint64_t before = ps_ticks_ordered();
    evaluate(&g, N_USUAL_TIMED);
    uint64_t after = ps_ticks_ordered();
    const ps_event *events = stored(N_USUAL_TIMED + 1);
    for (uint32_t i = 0; i <= N_USUAL_TIMED; i++) {
        CHECK(events[i].index == i && events[i].graph == 0);
        CHECK(events[i].ticks >= (i ? events[i - 1].ticks : before) && events[i].ticks <= after);
    }
}

TEST(events_that_find_the_ring_full_are_counted) {
    begin_with(PS_RECORDER_CALLBACK, 64, 1);
    for (int i = 0; i < 20; i++) {
        evaluate(&g, N_USUAL_TIMED);
    }
    CHECK(ps_recorder_dropped(recorder) == 20 * (N_USUAL_TIMED + 1) - 64);
    stored(64);
    evaluate(&g, N_USUAL_TIMED);
    stored(64 + N_USUAL_TIMED + 1);
    CHECK(ps_recorder_dropped(recorder) == 16);
}

TEST(drains_between_evaluations_change_nothing) {
    begin_with(PS_RECORDER_CALLBACK, 64, 1);
    for (uint64_t i = 1; i <= 3000; i++) {
        evaluate(&g, N_USUAL_TIMED);
        const ps_event *events = stored(i * (N_USUAL_TIMED + 1));
        CHECK(events[(i - 1) * (N_USUAL_TIMED + 1)].index == 0);
    }
    CHECK(ps_recorder_dropped(recorder) == 0 && ps_recorder_n_graphs(recorder) == 1);
}

TEST(clearing_forgets_times_and_keeps_graphs) {
    begin(PS_RECORDER_CALLBACK);
    evaluate(&g, N_USUAL_TIMED);
    stored(N_USUAL_TIMED + 1);
    evaluate(&g, N_USUAL_TIMED);
    ps_recorder_clear(recorder);
    stored(0);
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    evaluate(&g, N_USUAL_TIMED);
    CHECK(stored(N_USUAL_TIMED + 1)[0].graph == 0);
}

TEST(what_was_kept_survives_a_clear) {
    begin(PS_RECORDER_CALLBACK);
    evaluate(&g, N_USUAL_TIMED);
    ps_recorder_keep(recorder);
    evaluate(&g, N_USUAL_TIMED);
    ps_recorder_clear(recorder);
    stored(N_USUAL_TIMED + 1);
    evaluate(&g, N_USUAL_TIMED);
    stored(2 * (N_USUAL_TIMED + 1));
}

TEST(the_naive_recorder_answers_yes_and_stamps_each_answer) {
    begin(PS_RECORDER_CB_EVAL);
    for (int i = 0; i < N_USUAL; i++) {
        CHECK(ps_recorder_ask(&g.nodes[i], true, recorder));
        CHECK(ps_recorder_ask(&g.nodes[i], false, recorder));
    }
    stored(N_USUAL);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

/* As a scheduler does: nodes are asked for until one ends a group, and that one is told again once it is computed. */
static int compute_groups(graph *g) {
    int n_groups = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (ps_recorder_ask(&g->nodes[i], true, recorder)) {
            CHECK(ps_recorder_ask(&g->nodes[i], false, recorder));
            n_groups++;
        }
    }
    return n_groups;
}

TEST(without_groups_every_node_ends_one) {
    begin(PS_RECORDER_GROUPS);
    CHECK(compute_groups(&g) == N_USUAL);
    CHECK(ps_recorder_n_graphs(recorder) == 0); /* the evaluation is not over */
    ps_recorder_end_evaluation(recorder);
    const ps_event *events = stored(N_USUAL + 1);
    for (uint32_t i = 0; i <= N_USUAL; i++) {
        CHECK(events[i].graph == 0 && events[i].index == i);
        CHECK(i == 0 || events[i].ticks >= events[i - 1].ticks);
    }
    ps_recorder_end_evaluation(recorder); /* there is no other */
    stored(N_USUAL + 1);
}

TEST(a_group_ends_at_its_last_node) {
    static const uint8_t ends[] = {1, 0, 0, 1};
    static const uint32_t last[] = {0, 1, 4, 5}; /* the launch, then what was asked for by the end of each group */
    begin(PS_RECORDER_GROUPS);
    ps_recorder_set_groups(recorder, ends, 4);
    CHECK(compute_groups(&g) == 3);
    ps_recorder_end_evaluation(recorder);
    const ps_event *events = stored(4);
    for (int i = 0; i < 4; i++) {
        CHECK(events[i].graph == 0 && events[i].index == last[i]);
    }
    CHECK(nodes_of(0, N_USUAL)[2].tensor.ne[0] == 32);
}

TEST(nodes_behind_the_last_group_have_no_end) {
    static const uint8_t ends[N_USUAL] = {0, 1, 0, 0, 0};
    begin(PS_RECORDER_GROUPS);
    ps_recorder_set_groups(recorder, ends, N_USUAL);
    CHECK(compute_groups(&g) == 1);
    ps_recorder_end_evaluation(recorder);
    CHECK(stored(2)[1].index == 2);
    nodes_of(0, N_USUAL);
}

TEST(the_graphs_of_an_evaluation_are_one) {
    static const uint8_t ends[] = {1, 1, 1, 1, 0, 0, 1, 1, 1, 1};
    graph first, second;
    begin(PS_RECORDER_GROUPS);
    usual_graph(&first);
    usual_graph(&second);
    ps_recorder_set_groups(recorder, ends, 10);
    for (int i = 0; i < 3; i++) {
        CHECK(compute_groups(&first) == 4 && compute_groups(&second) == 4);
        ps_recorder_end_evaluation(recorder);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    nodes_of(0, 2 * N_USUAL);
    const ps_event *events = stored(3 * 9);
    CHECK(events[4].index == 4 && events[5].index == 7 && events[9].index == 0 && events[26].index == 10);
}

TEST(groups_may_change_from_one_evaluation_to_the_next) {
    static const uint8_t prefill_ends[] = {0, 0}, decode_ends[] = {1, 0};
    graph prefill, decode;
    begin(PS_RECORDER_GROUPS);
    usual_graph(&prefill);
    usual_graph(&decode);
    for (int i = 0; i < 4; i++) {
        ps_recorder_set_groups(recorder, i % 2 ? decode_ends : prefill_ends, 2);
        CHECK(compute_groups(i % 2 ? &decode : &prefill) == 3 + i % 2);
        ps_recorder_end_evaluation(recorder);
    }
    CHECK(ps_recorder_n_graphs(recorder) == 2);
    const ps_event *events = stored(4 + 5 + 4 + 5);
    CHECK(events[0].graph == 0 && events[1].index == 3 && events[4].graph == 1 && events[5].index == 1);
    CHECK(events[9].graph == 0 && events[13].graph == 1 && ps_recorder_dropped(recorder) == 0);
}

TEST(a_node_of_a_group_is_not_fused_away) {
    begin(PS_RECORDER_GROUPS);
    compute_groups(&g);
    ps_recorder_end_evaluation(recorder);
    const ps_node *nodes = nodes_of(0, N_USUAL);
    CHECK(nodes[2].timed && nodes[3].timed && !nodes[3].fused_into_previous && !nodes[1].timed);
}

TEST(an_evaluation_with_too_many_nodes_has_no_groups) {
    begin(PS_RECORDER_GROUPS);
    for (int i = 0; i <= (1 << 16) / N_USUAL; i++) {
        compute_groups(&g);
    }
    ps_recorder_end_evaluation(recorder);
    stored(0);
    CHECK(ps_recorder_n_graphs(recorder) == 0 && ps_recorder_dropped(recorder) == 1);
    compute_groups(&g);
    ps_recorder_end_evaluation(recorder);
    stored(N_USUAL + 1);
}

TEST(the_end_of_an_evaluation_is_for_groups_alone) {
    begin(PS_RECORDER_CALLBACK);
    ask_all(&g);
    ps_recorder_end_evaluation(recorder);
    CHECK(ps_recorder_n_graphs(recorder) == 0);
    tick(N_USUAL_TIMED);
    stored(N_USUAL_TIMED + 1);
}

/* ---- the injected slowdown ---------------------------------------------------------------------------------------- */

/* Far longer than any test may run: an operator that should not wait and does is a test that does not end. */
static const int64_t forever_ns = INT64_C(1000000000000);

TEST(an_injected_delay_slows_the_named_operator) {
    static const char *const names[] = {"ADD", "l_out"};
    const uint64_t extra_ticks = 3000000;
    for (int i = 0; i < 2; i++) {
        begin(PS_RECORDER_CALLBACK);
        ps_recorder_inject(recorder, names[i], 0.0, (int64_t)extra_ticks, 1.0);
        evaluate(&g, N_USUAL_TIMED);
        const ps_event *events = stored(N_USUAL_TIMED + 1);
        CHECK(events[3].ticks - events[2].ticks >= extra_ticks);
    }
}

TEST(an_injected_ratio_lengthens_by_the_operators_own_time) {
    begin(PS_RECORDER_CALLBACK);
    ps_recorder_inject(recorder, "MUL_MAT", 3.0, 0, 1.0);
    ask_all(&g);
    uint64_t begin = ps_ticks_ordered();
    while (ps_ticks_ordered() - begin < 1000000) {
    }
    tick(N_USUAL_TIMED);
    const ps_event *events = stored(N_USUAL_TIMED + 1);
    CHECK(events[1].ticks - begin >= 4 * 1000000);
}

TEST(an_injected_delay_slows_nothing_else) {
    begin(PS_RECORDER_CALLBACK);
    ps_recorder_inject(recorder, "ADD", 1.0, forever_ns, 1.0);
    ask_all(&g);
    tick(N_USUAL_TIMED - 1); /* all but the one that is named */
    stored(N_USUAL_TIMED);
}

TEST(a_name_is_the_whole_role_and_nothing_but_it) {
    static const char *const names[] = {"MUL", "VIEW", "ffn", "ffn_gate-7", "ffn_gate-", "add", "gate", "blk.0.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        begin(PS_RECORDER_CALLBACK);
        ps_recorder_inject(recorder, names[i], 1.0, forever_ns, 1.0);
        evaluate(&g, N_USUAL_TIMED);
        stored(N_USUAL_TIMED + 1);
    }
}

/* ---- entries of operators ----------------------------------------------------------------------------------------- */

/* The first sight of a graph cannot tell which node is its last; from then on its first entry is kept. */
TEST(the_first_entry_is_kept_once_a_graph_is_known) {
    begin(PS_RECORDER_CALLBACK);
    ps_recorder_watch_entries(recorder);
    uint64_t others[3];
    for (int round = 0; round < 3; round++) {
        ask_all(&g);
        ps_recorder_entry(1, &g.nodes[0]);
        others[round] = ps_ticks_ordered();
        ps_recorder_entry(0, &g.nodes[0]);
        tick(1);
        ps_recorder_entry(0, &g.nodes[4]);
        tick(N_USUAL_TIMED - 1);
    }
    const ps_event *events = stored(3 * (N_USUAL_TIMED + 1) + 2);
    int n_entries = 0;
    for (int i = 0; i < 3 * (N_USUAL_TIMED + 1) + 2; i++) {
        if (events[i].index == PS_EVENT_FIRST_START) {
            CHECK(events[i + 1].index == 0 && events[i + 1].ticks <= events[i].ticks);
            CHECK(events[i].ticks <= events[i + 2].ticks);
            CHECK(events[i].ticks >= others[++n_entries]);
        }
    }
    CHECK(n_entries == 2);
}
