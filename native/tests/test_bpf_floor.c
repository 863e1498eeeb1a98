/* Which levels the floor takes off and puts back, on an engine that is simulated. */
#include "bpf/floor.h"

#include "check.h"
#include "perfsuite/bpf_log.h"

enum { ALL = 0xff, FLOOR_MILLI = 10000 };

static const int64_t MS = 1000000, S = INT64_C(1000000000);

static ps_floor tried;
static struct {
    int64_t ns;
    double slowed;     /* by something else: 1 is not at all */
    double dear_ratio; /* by counters and ends */
    int n_changes;
} engine;

static void begin(uint64_t floor_milli_tokens_per_s, double slowed, double dear_ratio) {
    ps_floor_begin(&tried, floor_milli_tokens_per_s, ALL);
    engine.ns = S;
    engine.slowed = slowed;
    engine.dear_ratio = dear_ratio;
    engine.n_changes = 0;
}

static int64_t interval_ns(void) {
    double ratio = engine.slowed * (tried.levels & (PS_BPF_COUNTERS | PS_BPF_ENDS) ? engine.dear_ratio : 1) *
                   (tried.levels & PS_BPF_OPERATOR ? 1.2 : 1);
    return (int64_t)((double)(50 * MS) * ratio); /* 20 tokens/s untouched: twice the floor */
}

static void decode(int64_t during_ns) {
    for (int64_t end_ns = engine.ns + during_ns; engine.ns < end_ns; engine.ns += interval_ns()) {
        engine.n_changes += ps_floor_decode(&tried, engine.ns, 1);
    }
}

TEST(nothing_is_taken_off_above_the_floor) {
    begin(FLOOR_MILLI, 1, 1.5);
    decode(20 * S);
    CHECK(tried.levels == ALL && engine.n_changes == 0);
    CHECK(tried.milli_tokens_per_s > 11000 && tried.milli_tokens_per_s < 11200);
}

TEST(nothing_is_taken_off_without_a_floor) {
    begin(0, 100, 1);
    decode(200 * S);
    CHECK(tried.levels == ALL && engine.n_changes == 0 && tried.milli_tokens_per_s > 0);
}

TEST(the_dearest_goes_first_and_no_more_than_needed) {
    begin(FLOOR_MILLI, 1, 3);
    decode(5 * S);
    CHECK(tried.levels == (ALL & ~(PS_BPF_COUNTERS | PS_BPF_ENDS)) && engine.n_changes == 1);
}

TEST(tokens_stay_whatever_the_speed) {
    begin(FLOOR_MILLI, 10, 1);
    decode(60 * S);
    CHECK(tried.levels == PS_BPF_TOKEN && engine.n_changes == PS_FLOOR_STAGES);
}

TEST(all_comes_back_after_a_slow_time) {
    begin(FLOOR_MILLI, 10, 1.1);
    decode(60 * S);
    CHECK(tried.levels == PS_BPF_TOKEN);
    engine.slowed = 1;
    decode(120 * S);
    CHECK(tried.levels == ALL);
}

/* A stage whose cost is above what the floor leaves is tried again ever more seldom. */
TEST(it_does_not_flap) {
    begin(FLOOR_MILLI, 1, 3);
    decode(60 * S);
    int n_first = engine.n_changes;
    decode(600 * S);
    CHECK(n_first <= 8 && engine.n_changes - n_first <= 20);
    CHECK((tried.levels & PS_BPF_OPERATOR) != 0);
}

TEST(prompts_and_pauses_do_not_count) {
    begin(FLOOR_MILLI, 1, 1);
    for (int i = 0; i < 20; i++) {
        decode(S);
        engine.ns += 30 * S; /* nobody asks for anything */
        CHECK(!ps_floor_decode(&tried, engine.ns, 512));
        engine.ns += 10 * S;
    }
    CHECK(tried.levels == ALL && engine.n_changes == 0);
}

TEST(what_is_asked_for_holds) {
    begin(FLOOR_MILLI, 1, 3);
    decode(5 * S);
    ps_floor_ask(&tried, PS_BPF_TOKEN | PS_BPF_OPERATOR);
    CHECK(tried.levels == (PS_BPF_TOKEN | PS_BPF_OPERATOR));
    decode(60 * S);
    CHECK(tried.levels == (PS_BPF_TOKEN | PS_BPF_OPERATOR));
}
