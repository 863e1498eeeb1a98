/* The preload recorder: what each thread began and ended. */
#include <pthread.h>

#include "fake_graph.h"
#include "perfsuite/clock.h"

TEST(entries_that_nobody_watches_are_nothing) {
    begin(PS_RECORDER_PRELOAD);
    ps_recorder_watch_entries(recorder);
    ps_recorder_watch_entries(NULL);
    ask_all(&g);
    ps_recorder_entry(0, &g.nodes[0]);
    stored(0);
    ps_recorder_watch_entries(recorder);
    begin(PS_RECORDER_PRELOAD);
    ps_recorder_entry(0, &g.nodes[0]); /* what is closed is watched no more */
}

static const int entered_nodes[] = {0, 2, 4}; /* of a fused pair the first */
enum { N_ENTERED = 3 };

static void enter_all(const graph *g, int thread) {
    for (int i = 0; i < N_ENTERED; i++) {
        ps_recorder_entry(thread, &g->nodes[entered_nodes[i]]);
    }
}

static const ps_thread_event *thread_events(uint64_t n_expected) {
    uint64_t n_events;
    ps_recorder_drain(recorder);
    const ps_thread_event *events = ps_recorder_thread_events(recorder, &n_events);
    CHECK(n_events == n_expected);
    return events;
}

static void watch(int32_t n_threads) {
    begin_with(PS_RECORDER_PRELOAD, CAPACITY, n_threads);
    ps_recorder_watch_entries(recorder);
}

TEST(entries_of_each_thread_name_their_nodes) {
    watch(2);
    for (int round = 0; round < 3; round++) {
        ask_all(&g);
        enter_all(&g, 0);
        enter_all(&g, 1);
    }
    const ps_thread_event *events = thread_events(2 * 3 * N_ENTERED);
    for (int i = 0; i < 2 * 3 * N_ENTERED; i++) {
        CHECK(events[i].thread == (uint32_t)(i / (3 * N_ENTERED)) && events[i].graph == 0);
        CHECK(events[i].node == (uint32_t)entered_nodes[i % N_ENTERED]);
        CHECK(i % (3 * N_ENTERED) == 0 || events[i].ticks >= events[i - 1].ticks);
    }
    CHECK(ps_recorder_dropped(recorder) == 0);
    stored(3); /* the launches */
}

TEST(entries_go_to_the_graph_that_was_launched) {
    graph prefill, decode;
    watch(1);
    usual_graph(&prefill);
    usual_graph(&decode);
    graph *order[] = {&prefill, &decode, &decode, &prefill, &decode};
    for (int i = 0; i < 5; i++) {
        ask_all(order[i]);
        enter_all(order[i], 0);
        if (i == 2) {
            ps_recorder_drain(recorder);
        }
    }
    const ps_thread_event *events = thread_events(5 * N_ENTERED);
    for (int i = 0; i < 5 * N_ENTERED; i++) {
        CHECK(events[i].graph == (order[i / N_ENTERED] == &decode ? 1u : 0u));
        CHECK(events[i].node == (uint32_t)entered_nodes[i % N_ENTERED]);
    }
}

TEST(a_node_that_is_entered_again_belongs_to_the_next_graph) {
    watch(1);
    empty_graph(&g);
    struct ggml_tensor *node = add(&g, GGML_OP_ADD, &g.weight, &g.weight);
    for (int64_t n_rows = 1; n_rows <= 3; n_rows++) {
        shape(node, 32, n_rows);
        ask_all(&g);
        ps_recorder_entry(0, node);
    }
    const ps_thread_event *events = thread_events(3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(events[i].graph == i && events[i].node == 0);
    }
}

TEST(entries_of_strangers_are_dropped_and_of_more_threads_ignored) {
    graph stranger;
    watch(1);
    usual_graph(&stranger);
    ask_all(&g);
    ps_recorder_entry(0, &g.nodes[0]);
    ps_recorder_entry(1, &g.nodes[0]);
    ps_recorder_entry(0, &stranger.nodes[0]);
    thread_events(1);
    CHECK(ps_recorder_dropped(recorder) == 1);
    ps_recorder_clear(recorder);
    thread_events(0);
}

static void *enter_as_the_second(void *context) {
    enter_all(context, 1);
    return NULL;
}

TEST(threads_enter_at_the_same_time) {
    watch(2);
    for (int round = 0; round < 50; round++) {
        pthread_t second;
        ask_all(&g);
        CHECK(pthread_create(&second, NULL, enter_as_the_second, &g) == 0);
        enter_all(&g, 0);
        CHECK(pthread_join(second, NULL) == 0);
    }
    thread_events(2 * 50 * N_ENTERED);
    CHECK(ps_recorder_dropped(recorder) == 0);
}

TEST(a_number_of_threads_out_of_range_is_brought_into_it) {
    watch(0);
    watch(-3);
    begin_with(PS_RECORDER_PRELOAD, 64, 1 << 20);
}

/* ---- ends --------------------------------------------------------------------------------------------------------- */

/* The calling thread's part of a graph: an operator and a number of barriers, and so on; when it came to the last of each
 * operator's. */
static void compute(const graph *g, int thread, int n_barriers, uint64_t *last) {
    for (int i = 0; i < N_ENTERED; i++) {
        ps_recorder_entry(thread, &g->nodes[entered_nodes[i]]);
        for (int barrier = 0; barrier < n_barriers; barrier++) {
            last[i] = ps_ticks_ordered();
            ps_recorder_arrival();
        }
    }
}

TEST(an_operator_ends_at_its_last_barrier) {
    for (int n_barriers = 1; n_barriers <= 3; n_barriers++) {
        uint64_t last[N_ENTERED];
        watch(1);
        ask_all(&g);
        compute(&g, 0, n_barriers, last);
        uint64_t after = ps_ticks_ordered();
        const ps_thread_event *events = thread_events(N_ENTERED);
        for (int i = 0; i < N_ENTERED; i++) {
            CHECK(events[i].ticks <= last[i] && last[i] <= events[i].end_ticks);
            CHECK(events[i].end_ticks <= (i + 1 < N_ENTERED ? events[i + 1].ticks : after));
        }
    }
}

TEST(without_a_barrier_no_end_is_known) {
    watch(1);
    ps_recorder_arrival();
    ask_all(&g);
    enter_all(&g, 0);
    const ps_thread_event *events = thread_events(N_ENTERED);
    for (int i = 0; i < N_ENTERED; i++) {
        CHECK(events[i].end_ticks == 0);
    }
}

/* The thread of the last operator waits behind it, and once more at the end of the graph. */
TEST(views_behind_the_last_operator_do_not_lengthen_it) {
    watch(1);
    add(&g, GGML_OP_VIEW, &g.nodes[4], NULL);
    ask_all(&g);
    ps_recorder_entry(0, &g.nodes[0]);
    ps_recorder_arrival();
    ps_recorder_entry(0, &g.nodes[4]);
    ps_recorder_arrival();
    uint64_t between = ps_ticks_ordered();
    ps_recorder_arrival();
    const ps_thread_event *events = thread_events(2);
    CHECK(events[1].end_ticks >= events[1].ticks && events[1].end_ticks <= between);
    CHECK(events[0].end_ticks >= events[0].ticks && events[0].end_ticks <= events[1].ticks);
}

TEST(a_graph_that_ends_with_a_fused_pair_waits_once) {
    watch(1);
    empty_graph(&g);
    struct ggml_tensor *norm = add(&g, GGML_OP_RMS_NORM, &g.weight, NULL);
    add(&g, GGML_OP_MUL, norm, &g.weight);
    ask_all(&g);
    ps_recorder_entry(0, norm);
    ps_recorder_arrival();
    uint64_t between = ps_ticks_ordered();
    ps_recorder_arrival();
    const ps_thread_event *events = thread_events(1);
    CHECK(events[0].node == 0 && events[0].end_ticks >= between);
}

TEST(the_end_of_a_start_without_room_is_nobodys) {
    begin_with(PS_RECORDER_PRELOAD, 64, 1);
    ps_recorder_watch_entries(recorder);
    ask_all(&g);
    ps_recorder_entry(0, &g.nodes[0]);
    ps_recorder_arrival();
    for (int i = 0; i < 31; i++) {
        ps_recorder_entry(0, &g.nodes[4]); /* each pushes the end of the one before, and itself */
        ps_recorder_arrival();
    }
    for (int i = 0; i < 9; i++) {
        ps_recorder_entry(0, &g.nodes[0]);
        ps_recorder_arrival();
    }
    uint64_t n_events;
    ps_recorder_drain(recorder);
    const ps_thread_event *events = ps_recorder_thread_events(recorder, &n_events);
    CHECK(n_events == 2 && events[1].node == 4); /* the same node again belongs to no graph that was launched */
    CHECK(ps_recorder_dropped(recorder) == 30 + 9);
    CHECK(events[0].end_ticks && events[1].end_ticks && events[1].end_ticks >= events[1].ticks);
}

typedef struct part {
    const graph *g;
    int thread;
} part;

static void *compute_part(void *context) {
    const part *own = context;
    uint64_t last[N_ENTERED];
    compute(own->g, own->thread, 2, last);
    return NULL;
}

TEST(each_thread_has_ends_of_its_own) {
    watch(2);
    for (int round = 0; round < 50; round++) {
        pthread_t second;
        part first_part = {&g, 0}, second_part = {&g, 1};
        ask_all(&g);
        CHECK(pthread_create(&second, NULL, compute_part, &second_part) == 0);
        compute_part(&first_part);
        CHECK(pthread_join(second, NULL) == 0);
    }
    const ps_thread_event *events = thread_events(2 * 50 * N_ENTERED);
    for (int i = 0; i < 2 * 50 * N_ENTERED; i++) {
        bool is_last = i % (50 * N_ENTERED) == 50 * N_ENTERED - 1;
        CHECK(events[i].end_ticks >= events[i].ticks && (is_last || events[i].end_ticks <= events[i + 1].ticks));
    }
    CHECK(ps_recorder_dropped(recorder) == 0);
}

/* ---- what is watched ---------------------------------------------------------------------------------------------- */

TEST(only_what_the_recorder_needs_is_watched) {
    static const struct {
        ps_recorder_kind kind;
        uint32_t bits;
    } expected[] = {{PS_RECORDER_CALLBACK, 0},
                    {PS_RECORDER_PRELOAD, PS_WATCH_THREADS},
                    {PS_RECORDER_GROUPS, 0},
                    {PS_RECORDER_EXPERTS, 0},
                    {PS_RECORDER_SPLITS, PS_WATCH_SPLITS}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        begin(expected[i].kind);
        CHECK(ps_watching == 0);
        ps_recorder_watch_entries(recorder);
        CHECK(ps_watching == expected[i].bits);
        ps_recorder_watch_entries(NULL);
        CHECK(ps_watching == 0);
        ps_recorder_watch_entries(recorder);
    }
    begin(PS_RECORDER_CALLBACK); /* the last is closed too */
    CHECK(ps_watching == 0);
}
