#include "check.h"
#include "probe_timing.h"

static const int64_t MS = PS_NS_PER_MS;

static ps_schedule opened(int64_t budget_ns) {
    ps_schedule schedule;
    ps_schedule_open(&schedule, 0, budget_ns);
    return schedule;
}

TEST(the_first_repetition_only_warms_up) {
    ps_schedule schedule = opened(100 * MS);
    ps_schedule_add(&schedule, 5 * MS, 5 * MS);
    CHECK(schedule.n_kept == 0 && !schedule.done);
    ps_schedule_add(&schedule, 4 * MS, 9 * MS);
    CHECK(schedule.n_kept == 1 && schedule.pass_ns[0] == 4.0 * MS);
}

TEST(short_repetitions_grow_until_their_stamps_do_not_count) {
    ps_schedule schedule = opened(100 * MS);
    int64_t now_ns = 0;
    while (schedule.n_kept == 0) {
        int64_t duration_ns = 100 * schedule.passes;
        ps_schedule_add(&schedule, duration_ns, now_ns += duration_ns);
    }
    CHECK(100 * schedule.passes >= schedule.wanted_ns);
    CHECK(100 * schedule.passes < 2 * schedule.wanted_ns);
    CHECK(schedule.pass_ns[0] == 100.0);
}

TEST(it_ends_when_another_repetition_would_overrun) {
    ps_schedule schedule = opened(100 * MS);
    ps_schedule_add(&schedule, 30 * MS, 30 * MS);
    ps_schedule_add(&schedule, 30 * MS, 60 * MS);
    CHECK(!schedule.done);
    ps_schedule_add(&schedule, 30 * MS, 90 * MS);
    CHECK(schedule.done && schedule.n_kept == 2);
}

TEST(one_repetition_is_kept_however_small_the_budget) {
    ps_schedule schedule = opened(1 * MS);
    ps_schedule_add(&schedule, 50 * MS, 50 * MS);
    CHECK(schedule.done && schedule.n_kept == 1);
    schedule = opened(1 * MS);
    ps_schedule_add(&schedule, 0, 50 * MS);
    CHECK(schedule.done && schedule.n_kept == 1 && schedule.pass_ns[0] == 1.0);
}

TEST(it_ends_when_its_room_is_full) {
    ps_schedule schedule = opened(PS_MAX_BUDGET_MS * MS);
    for (int i = 0; i <= PS_MAX_REPETITIONS; i++) {
        CHECK(!schedule.done);
        ps_schedule_add(&schedule, 2 * MS, i * 2 * MS);
    }
    CHECK(schedule.done && schedule.n_kept == PS_MAX_REPETITIONS);
}

static ps_pass_times closed(int n, const double *pass_ns) {
    ps_schedule schedule = opened(MS);
    for (int i = 0; i < n; i++) {
        schedule.pass_ns[i] = pass_ns[i];
    }
    schedule.n_kept = n;
    return ps_schedule_close(&schedule);
}

TEST(best_and_median) {
    const double pass_ns[] = {5.0, 2.0, 9.0, 3.0};
    ps_pass_times odd = closed(3, pass_ns);
    CHECK(odd.best_ns == 2.0 && odd.median_ns == 5.0 && odd.repetitions == 3);
    ps_pass_times even = closed(4, pass_ns);
    CHECK(even.best_ns == 2.0 && even.median_ns == 4.0 && even.repetitions == 4);
    CHECK(closed(0, pass_ns).repetitions == 0);
}

TEST(a_rate_is_amount_over_seconds) {
    ps_pass_times times = {.best_ns = 2.0, .median_ns = 4.0, .repetitions = 7};
    ps_rate rate = ps_rate_of(10.0, &times);
    CHECK(rate.best_per_s == 5e9 && rate.median_per_s == 2.5e9 && rate.repetitions == 7);
}

static int refuse(const ps_member *member, void *context, int64_t passes) {
    return member->thread == 1 ? PS_NO_MEMORY : PS_OK;
}

TEST(work_that_fails_ends_the_probe) {
    ps_probe_setup setup = {.n_threads = 3, .budget_ms = 10};
    ps_pass_times times;
    CHECK(ps_time_passes(&setup, 10 * MS, refuse, NULL, &times) == PS_NO_MEMORY);
}
