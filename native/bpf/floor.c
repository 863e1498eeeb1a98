#include "floor.h"

#include <string.h>

#include "perfsuite/bpf_log.h"

static const int64_t FIRST_HOLD_NS = INT64_C(2000000000), LAST_HOLD_NS = INT64_C(64000000000);

/* How far above the floor counts as clearly above. */
static const double CLEARLY = 1.05;

static const uint32_t STAGES[PS_FLOOR_STAGES] = {
    PS_BPF_COUNTERS | PS_BPF_ENDS,
    PS_BPF_OPERATOR | PS_BPF_STRUCTURE | PS_BPF_EXPERTS,
    PS_BPF_THREADS,
    PS_BPF_GRAPH,
};

void ps_floor_begin(ps_floor *floor, uint64_t floor_milli_tokens_per_s, uint32_t levels) {
    memset(floor, 0, sizeof(*floor));
    floor->floor_milli_tokens_per_s = floor_milli_tokens_per_s;
    for (int i = 0; i < PS_FLOOR_STAGES; i++) {
        floor->stages[i].levels = STAGES[i];
        floor->stages[i].hold_ns = FIRST_HOLD_NS;
    }
    ps_floor_ask(floor, levels);
}

static void begin_anew(ps_floor *floor) {
    floor->n_intervals = 0;
    floor->enough_since_ns = 0;
}

void ps_floor_ask(ps_floor *floor, uint32_t levels) {
    floor->levels = levels;
    for (int i = 0; i < PS_FLOOR_STAGES; i++) {
        floor->stages[i].off = 0;
        floor->stages[i].left_ratio = 0;
    }
    begin_anew(floor);
}

static bool add_interval(ps_floor *floor, int64_t ns, int64_t n_tokens) {
    int64_t previous_ns = floor->previous_ns;
    floor->previous_ns = n_tokens == 1 ? ns : 0;
    if (n_tokens != 1 || !previous_ns || ns <= previous_ns) {
        return false;
    }
    floor->intervals_ns[floor->n_intervals % PS_FLOOR_SAMPLES] = ns - previous_ns;
    floor->n_intervals++;
    return floor->n_intervals >= PS_FLOOR_IGNORED + PS_FLOOR_SAMPLES;
}

static double median_speed(const ps_floor *floor) {
    int64_t sorted[PS_FLOOR_SAMPLES];
    for (int i = 0; i < PS_FLOOR_SAMPLES; i++) {
        int at = i;
        /* cppcheck-suppress uninitvar ; all before `at` are filled */
        for (; at > 0 && sorted[at - 1] > floor->intervals_ns[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = floor->intervals_ns[i];
    }
    return 1e12 / (double)sorted[PS_FLOOR_SAMPLES / 2];
}

/* What the stage that went last had cost shows in the first speed without it. */
static void learn_cost(ps_floor *floor) {
    for (int i = 0; i < PS_FLOOR_STAGES; i++) {
        ps_floor_stage *stage = &floor->stages[i];
        if (stage->off && stage->left_ratio == 0) {
            double ratio = stage->milli_tokens_per_s_when_taken / floor->milli_tokens_per_s;
            stage->left_ratio = ratio < 1 ? ratio : 1;
        }
    }
}

static bool take_off(ps_floor *floor, int64_t ns) {
    for (int i = 0; i < PS_FLOOR_STAGES; i++) {
        ps_floor_stage *stage = &floor->stages[i];
        if (floor->levels & stage->levels) {
            bool is_soon = stage->changed_ns && ns - stage->changed_ns < 4 * stage->hold_ns;
            int64_t longer_ns = 2 * stage->hold_ns < LAST_HOLD_NS ? 2 * stage->hold_ns : LAST_HOLD_NS;
            stage->hold_ns = is_soon ? longer_ns : FIRST_HOLD_NS;
            stage->off = floor->levels & stage->levels;
            stage->changed_ns = ns;
            stage->left_ratio = 0;
            stage->milli_tokens_per_s_when_taken = floor->milli_tokens_per_s;
            floor->levels &= ~stage->levels;
            begin_anew(floor);
            return true;
        }
    }
    return false;
}

static ps_floor_stage *last_taken(ps_floor *floor) {
    for (int i = PS_FLOOR_STAGES - 1; i >= 0; i--) {
        if (floor->stages[i].off) {
            return &floor->stages[i];
        }
    }
    return 0;
}

/* Something else may have made the difference, so that a cost is believed half as much after each hold. */
static bool would_suffice(const ps_floor *floor, ps_floor_stage *stage, int64_t ns) {
    double needed = CLEARLY * (double)floor->floor_milli_tokens_per_s;
    if (floor->milli_tokens_per_s * stage->left_ratio >= needed) {
        return true;
    }
    if (floor->milli_tokens_per_s >= needed && ns - floor->enough_since_ns >= 2 * stage->hold_ns) {
        stage->left_ratio = (1 + stage->left_ratio) / 2;
    }
    return false;
}

static bool put_back(ps_floor *floor, int64_t ns) {
    ps_floor_stage *stage = last_taken(floor);
    if (!stage || floor->milli_tokens_per_s < CLEARLY * (double)floor->floor_milli_tokens_per_s) {
        floor->enough_since_ns = 0;
        return false;
    }
    floor->enough_since_ns = floor->enough_since_ns ? floor->enough_since_ns : ns;
    if (ns - floor->enough_since_ns < stage->hold_ns) {
        return false;
    }
    if (!would_suffice(floor, stage, ns)) {
        if (ns - floor->enough_since_ns >= 2 * stage->hold_ns) {
            floor->enough_since_ns = ns;
        }
        return false;
    }
    floor->levels |= stage->off;
    stage->off = 0;
    stage->changed_ns = ns;
    begin_anew(floor);
    return true;
}

bool ps_floor_decode(ps_floor *floor, int64_t ns, int64_t n_tokens) {
    if (!add_interval(floor, ns, n_tokens)) {
        return false;
    }
    floor->milli_tokens_per_s = median_speed(floor);
    learn_cost(floor);
    if (!floor->floor_milli_tokens_per_s) {
        return false;
    }
    if (floor->milli_tokens_per_s < (double)floor->floor_milli_tokens_per_s) {
        floor->enough_since_ns = 0;
        return take_off(floor, ns);
    }
    return put_back(floor, ns);
}
