/* Backends of contexts that are not the recorder's: who is followed, and what of a graph that is only asked for. */
#include "fake_graph.h"

static struct ggml_backend backend_of(size_t device) {
    struct ggml_backend backend = {.name = "a backend", .device = ggml_backend_dev_get(device)};
    return backend;
}

TEST(a_processor_is_told_whom_to_report_to) {
    begin(PS_RECORDER_CALLBACK);
    struct ggml_backend processor = backend_of(0), card = backend_of(1), other = {.name = "without a device"};
    CHECK(!ps_is_watching(PS_WATCH_BACKENDS));
    ps_recorder_follow_backends(recorder, true);
    CHECK(ps_is_watching(PS_WATCH_BACKENDS));
    ps_recorder_follow(&processor);
    ps_recorder_follow(&card);
    ps_recorder_follow(&other);
    CHECK(processor.ended == ps_recorder_tick && processor.ended_data == recorder);
    CHECK(card.ended == NULL && other.ended == NULL);
    ps_recorder_follow_backends(recorder, false);
    CHECK(!ps_is_watching(PS_WATCH_BACKENDS));
}

TEST(backends_are_followed_through_an_evaluation) {
    begin(PS_RECORDER_CALLBACK);
    ps_recorder_follow_backends(recorder, true);
    for (int i = 0; i < 3; i++) { /* the graph is known from the second on, and its first entry waited for */
        evaluate(&g, N_USUAL_TIMED);
        CHECK(ps_is_watching(PS_WATCH_BACKENDS));
    }
}

TEST(who_hears_nothing_of_a_backend_follows_none) {
    static const ps_recorder_kind kinds[] = {PS_RECORDER_PRELOAD, PS_RECORDER_GROUPS, PS_RECORDER_SPLITS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin(kinds[i]);
        ps_recorder_follow_backends(recorder, true);
        CHECK(!ps_is_watching(PS_WATCH_BACKENDS));
    }
    ps_recorder_follow_backends(NULL, true);
    CHECK(!ps_is_watching(PS_WATCH_BACKENDS));
}

TEST(a_graph_that_is_only_asked_for_ends_at_its_first_node) {
    begin(PS_RECORDER_CALLBACK);
    ps_recorder_only_ask(recorder);
    ask_all(&g);
    CHECK(ps_recorder_tick(recorder));
    CHECK(ps_recorder_n_graphs(recorder) == 1);
    nodes_of(0, N_USUAL);
}
