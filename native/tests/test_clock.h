/* Facts about clock.h, compiled as C11 and as C++17. */
#include "check.h"
#include "perfsuite/clock.h"

TEST(clocks_go_forward) {
    int64_t ns = ps_now_ns();
    uint64_t ticks = ps_ticks_ordered();
    for (int i = 0; i < 1000; i++) {
        CHECK(ps_now_ns() >= ns);
        CHECK(ps_ticks_ordered() >= ticks);
    }
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
