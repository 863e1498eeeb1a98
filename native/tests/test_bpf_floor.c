/* Which levels the floor takes off and puts back, on an engine that is simulated. */
#include "bpf/floor.h"

#include "check.h"
#include "perfsuite/bpf_log.h"

enum { ALL = 0xff, FLOOR_MILLI = 10000 };

static const int64_t MS = 1000000, S = INT64_C(1000000000);

typedef struct engine {
    int64_t ns;
    double slowed;     /* by something else: 1 is not at all */
    double dear_ratio; /* by counters and ends */
    int n_changes;
} engine;

static int64_t interval_ns(const engine *e, uint32_t levels) {
    double ratio = e->slowed * (levels & (PS_BPF_COUNTERS | PS_BPF_ENDS) ? e->dear_ratio : 1) *
                   (levels & PS_BPF_OPERATOR ? 1.2 : 1);
    return (int64_t)((double)(50 * MS) * ratio); /* 20 tokens/s untouched: twice the floor */
}

static void decode(engine *e, ps_floor *floor, int64_t during_ns) {
    for (int64_t end_ns = e->ns + during_ns; e->ns < end_ns; e->ns += interval_ns(e, floor->levels)) {
        e->n_changes += ps_floor_decode(floor, e->ns, 1);
    }
}

TEST(nothing_is_taken_off_above_the_floor) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 1, .dear_ratio = 1.5};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 20 * S);
    CHECK(floor.levels == ALL && e.n_changes == 0);
    CHECK(floor.milli_tokens_per_s > 11000 && floor.milli_tokens_per_s < 11200);
}

TEST(nothing_is_taken_off_without_a_floor) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 100, .dear_ratio = 1};
    ps_floor_begin(&floor, 0, ALL);
    decode(&e, &floor, 200 * S);
    CHECK(floor.levels == ALL && e.n_changes == 0 && floor.milli_tokens_per_s > 0);
}

TEST(the_dearest_goes_first_and_no_more_than_needed) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 1, .dear_ratio = 3};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 5 * S);
    CHECK(floor.levels == (ALL & ~(PS_BPF_COUNTERS | PS_BPF_ENDS)) && e.n_changes == 1);
}

TEST(tokens_stay_whatever_the_speed) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 10, .dear_ratio = 1};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 60 * S);
    CHECK(floor.levels == PS_BPF_TOKEN && e.n_changes == PS_FLOOR_STAGES);
}

TEST(all_comes_back_after_a_slow_time) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 10, .dear_ratio = 1.1};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 60 * S);
    CHECK(floor.levels == PS_BPF_TOKEN);
    e.slowed = 1;
    decode(&e, &floor, 120 * S);
    CHECK(floor.levels == ALL);
}

/* A stage whose cost is above what the floor leaves is tried again ever more seldom. */
TEST(it_does_not_flap) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 1, .dear_ratio = 3};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 60 * S);
    int n_first = e.n_changes;
    decode(&e, &floor, 600 * S);
    CHECK(n_first <= 8 && e.n_changes - n_first <= 20);
    CHECK((floor.levels & PS_BPF_OPERATOR) != 0);
}

TEST(prompts_and_pauses_do_not_count) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 1, .dear_ratio = 1};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    for (int i = 0; i < 20; i++) {
        decode(&e, &floor, S);
        e.ns += 30 * S; /* nobody asks for anything */
        CHECK(!ps_floor_decode(&floor, e.ns, 512));
        e.ns += 10 * S;
    }
    CHECK(floor.levels == ALL && e.n_changes == 0);
}

TEST(what_is_asked_for_holds) {
    ps_floor floor;
    engine e = {.ns = S, .slowed = 1, .dear_ratio = 3};
    ps_floor_begin(&floor, FLOOR_MILLI, ALL);
    decode(&e, &floor, 5 * S);
    ps_floor_ask(&floor, PS_BPF_TOKEN | PS_BPF_OPERATOR);
    CHECK(floor.levels == (PS_BPF_TOKEN | PS_BPF_OPERATOR));
    decode(&e, &floor, 60 * S);
    CHECK(floor.levels == (PS_BPF_TOKEN | PS_BPF_OPERATOR));
}
