/* Facts about clock.h, compiled as C11 and as C++17. */
#include "check.h"
#include "perfsuite/clock.h"

static ps_clock_point ps_point(uint64_t ticks, int64_t ns) {
    ps_clock_point point = {ticks, ns, 0};
    return point;
}

static int64_t ps_convert(uint64_t ticks, ps_clock_point a, ps_clock_point b) {
    return ps_ticks_to_ns(ticks, &a, &b);
}

TEST(points_map_to_themselves) {
    ps_clock_point a = ps_point(1000, 77);
    ps_clock_point b = ps_point(4000, 1077);
    CHECK(ps_convert(1000, a, b) == 77);
    CHECK(ps_convert(4000, a, b) == 1077);
}

TEST(between_before_and_beyond_the_points) {
    ps_clock_point a = ps_point(1000, 10000);
    ps_clock_point b = ps_point(4000, 11000);
    CHECK(ps_convert(2500, a, b) == 10500);
    CHECK(ps_convert(7000, a, b) == 12000);
    CHECK(ps_convert(700, a, b) == 9900);
}

TEST(rounds_to_the_nearest_ns) {
    ps_clock_point a = ps_point(0, 0);
    ps_clock_point b = ps_point(3, 1);
    CHECK(ps_convert(1, a, b) == 0);
    CHECK(ps_convert(2, a, b) == 1);
    CHECK(ps_convert((uint64_t)-1, a, b) == 0);
    CHECK(ps_convert((uint64_t)-2, a, b) == -1);
}

TEST(the_order_of_the_points_does_not_matter) {
    ps_clock_point a = ps_point(1000, 10000);
    ps_clock_point b = ps_point(4000, 11000);
    CHECK(ps_convert(2500, b, a) == 10500);
    CHECK(ps_convert(700, b, a) == 9900);
}

TEST(a_counter_that_wraps) {
    ps_clock_point a = ps_point(UINT64_MAX - 99, 500);
    ps_clock_point b = ps_point(100, 600);
    CHECK(ps_convert(0, a, b) == 550);
    CHECK(ps_convert(UINT64_MAX - 49, a, b) == 525);
    CHECK(ps_convert(300, a, b) == 700);
}

/* A year at 5 GHz: the product of ticks and ns needs 113 bits. */
TEST(large_values_are_exact) {
    const int64_t year_ns = INT64_C(31536000000000000);
    ps_clock_point a = ps_point(12345, 678);
    ps_clock_point b = ps_point(12345 + 5 * (uint64_t)year_ns, 678 + year_ns);
    CHECK(ps_convert(12345 + 5 * (uint64_t)(year_ns - 1), a, b) == 678 + year_ns - 1);
}

TEST(the_ends_of_the_range_hold) {
    ps_clock_point a = ps_point(0, INT64_MAX - 10);
    ps_clock_point b = ps_point(1, INT64_MAX - 9);
    CHECK(ps_convert(1000, a, b) == INT64_MAX);
    a = ps_point(0, INT64_MIN);
    b = ps_point(1, INT64_MAX);
    CHECK(ps_convert(UINT64_C(1) << 63, a, b) == INT64_MIN);
    CHECK(ps_convert((UINT64_C(1) << 63) - 1, a, b) == INT64_MAX);
}

TEST(points_at_one_tick_give_the_first) {
    CHECK(ps_convert(5000, ps_point(7, 70), ps_point(7, 90)) == 70);
}

TEST(clocks_go_forward) {
    int64_t ns = ps_now_ns();
    uint64_t ticks = ps_ticks_ordered();
    for (int i = 0; i < 1000; i++) {
        CHECK(ps_now_ns() >= ns);
        CHECK(ps_ticks_ordered() >= ticks);
    }
    (void)ps_ticks_are_invariant();
}

TEST(calibration_lies_within_its_bracket) {
    for (int n_brackets = -1; n_brackets <= 16; n_brackets++) {
        int64_t before_ns = ps_now_ns();
        uint64_t before = ps_ticks_ordered();
        ps_clock_point point = ps_calibrate(n_brackets);
        CHECK(point.ticks >= before && point.ticks <= ps_ticks_ordered());
        CHECK(point.ns >= before_ns && point.ns <= ps_now_ns());
        CHECK(point.width_ticks <= ps_ticks_ordered() - before);
    }
}
