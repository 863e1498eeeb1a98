#include "launch_rounds.h"

#include <algorithm>
#include <cmath>

#include "perfsuite/clock.h"

namespace perfsuite {

namespace {

/* The numbers are those of perfsuite/measure/opencl_ceiling_rounds.py: from one trial to the next passes grow by no
 * less and no more than this, beyond what would just last long enough by so much, and to no more than this. */
constexpr double LEAST_GROWTH = 1.5, MOST_GROWTH = 64.0, BEYOND = 1.2, MOST_PASSES = 1 << 30;

int64_t launched_ns(const Launch &launch) {
    Stamps stamps = launch.run();
    return static_cast<int64_t>(stamps.end_ns) - static_cast<int64_t>(stamps.start_ns);
}

/* A launch that fails now counts as one that took for ever. */
int64_t fastest_ns(const RoundWay &way, int64_t n_launches) {
    int64_t best_ns = 0;
    try {
        for (; n_launches > 0; n_launches--) {
            int64_t taken_ns = launched_ns(*way.launch);
            if (taken_ns > 0 && (!best_ns || taken_ns < best_ns)) {
                best_ns = taken_ns;
            }
        }
    } catch (const ClRefusal &) {
        return best_ns;
    }
    return best_ns;
}

} // namespace

uint32_t passes_that_last(const Launch &launch, int64_t target_ns) {
    double passes = 1.0;
    while (true) {
        launch.set_last(static_cast<uint32_t>(passes));
        int64_t taken_ns = launched_ns(launch);
        if (taken_ns >= target_ns || passes >= MOST_PASSES) {
            return static_cast<uint32_t>(passes);
        }
        double growth =
            taken_ns > 0 ? static_cast<double>(target_ns) / static_cast<double>(taken_ns) * BEYOND : MOST_GROWTH;
        passes = std::min(std::ceil(passes * std::clamp(growth, LEAST_GROWTH, MOST_GROWTH)), MOST_PASSES);
    }
}

void run_rounds(std::vector<RoundWay> &ways, int64_t n_launches, int64_t n_least, int64_t until_ns) {
    auto can_run = [](const RoundWay &way) { return way.launch != nullptr; };
    if (std::none_of(ways.begin(), ways.end(), can_run)) {
        return;
    }
    int64_t round_ns = 0;
    for (int64_t n_rounds = 0; n_rounds < n_least || ps_now_ns() + round_ns < until_ns; n_rounds++) {
        int64_t began_ns = ps_now_ns();
        for (RoundWay &way : ways) {
            if (can_run(way)) {
                way.best_ns.push_back(fastest_ns(way, n_launches));
            }
        }
        round_ns = ps_now_ns() - began_ns;
    }
}

} // namespace perfsuite
