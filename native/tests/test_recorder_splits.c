/* The splits recorder: which backend is given which nodes. */
#include "fake_graph.h"
#include "perfsuite/clock.h"

static struct ggml_backend processor = {.name = "CPU"}, card = {.name = "Card"};

static void give(struct ggml_backend *backend, graph *g, int from, int to) {
    struct ggml_cgraph part = {.n_nodes = to - from};
    for (int i = from; i < to; i++) {
        part.nodes[i - from] = &g->nodes[i];
    }
    ps_recorder_split_begin(backend, &part);
    ps_recorder_split_end();
}

static void watch(void) {
    begin(PS_RECORDER_SPLITS);
    ps_recorder_watch_entries(recorder);
}

static const ps_split *splits(uint64_t n_expected) {
    uint64_t n_splits;
    const ps_split *found = ps_recorder_splits(recorder, &n_splits);
    CHECK(n_splits == n_expected);
    return found;
}

TEST(each_split_names_its_backend_and_its_nodes) {
    watch();
    uint64_t before = ps_ticks_ordered();
    for (int round = 0; round < 3; round++) {
        give(&processor, &g, 0, 1);
        give(&card, &g, 1, 4);
        give(&processor, &g, 4, 5);
    }
    const ps_split *found = splits(9);
    for (int i = 0; i < 9; i++) {
        CHECK(strcmp(ps_recorder_backend_name(recorder, found[i].backend), i % 3 == 1 ? "Card" : "CPU") == 0);
        CHECK(found[i].graph == i % 3 && found[i].launch_ticks >= before);
        CHECK(found[i].return_ticks >= found[i].launch_ticks);
        before = found[i].return_ticks;
    }
    nodes_of(0, 1);
    CHECK(strcmp(nodes_of(1, 3)[0].op, nodes_of(2, 1)[0].op) != 0);
    CHECK(ps_recorder_n_graphs(recorder) == 3);
    CHECK(ps_recorder_backend_name(recorder, 2) == NULL && ps_recorder_backend_name(recorder, -1) == NULL);
}

TEST(the_same_nodes_on_another_backend_are_another_graph) {
    watch();
    give(&processor, &g, 0, N_USUAL);
    give(&card, &g, 0, N_USUAL);
    give(&processor, &g, 0, N_USUAL);
    const ps_split *found = splits(3);
    CHECK(found[0].graph == 0 && found[1].graph == 1 && found[2].graph == 0);
}

TEST(devices_are_asked_what_they_would_refuse) {
    watch();
    give(&processor, &g, 0, N_USUAL);
    const ps_node *nodes = nodes_of(0, N_USUAL);
    CHECK(strcmp(ps_recorder_device_name(recorder, 0), "Card0") == 0);
    CHECK(strcmp(ps_recorder_device_name(recorder, 1), "Card1") == 0);
    CHECK(ps_recorder_device_name(recorder, 2) == NULL && ps_recorder_device_name(recorder, -1) == NULL);
    CHECK(nodes[0].refused_by == 0); /* a product */
    CHECK(nodes[1].refused_by == 0); /* a view, which nobody computes */
    CHECK(nodes[2].refused_by == 2 && nodes[3].refused_by == 2 && nodes[4].refused_by == 2);
    CHECK(nodes[3].timed && !nodes[3].fused_into_previous); /* a device need not fuse as the processor does */
}

TEST(splits_are_cleared_and_kept_as_times_are) {
    watch();
    give(&processor, &g, 0, N_USUAL);
    ps_recorder_clear(recorder);
    splits(0);
    give(&card, &g, 0, N_USUAL);
    ps_recorder_keep(recorder);
    give(&processor, &g, 0, N_USUAL);
    ps_recorder_clear(recorder);
    CHECK(splits(1)[0].graph == 1);
}

TEST(an_empty_part_is_no_split) {
    watch();
    give(&processor, &g, 2, 2);
    splits(0);
    CHECK(ps_recorder_dropped(recorder) == 0 && ps_recorder_n_graphs(recorder) == 0);
}

TEST(backends_beyond_the_table_share_its_last_name) {
    char names[20][8];
    watch();
    for (int i = 0; i < 20; i++) {
        struct ggml_backend backend = {.name = names[i]};
        snprintf(names[i], sizeof names[i], "b%d", i);
        give(&backend, &g, 0, 1);
    }
    CHECK(splits(20)[19].backend == 15);
    CHECK(strcmp(ps_recorder_backend_name(recorder, 15), "b15") == 0);
}
