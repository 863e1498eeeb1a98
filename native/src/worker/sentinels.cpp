#include "sentinels.h"

#include <algorithm>
#include <cmath>
#include <sched.h>
#include <string>

#include "contention.h"
#include "perfsuite/probe.h"

namespace perfsuite {

namespace {

/* What they do: read 64 MiB, and multiply and add 100 million times in single precision. */
constexpr int64_t MEMORY_BYTES = 64 * 1024 * 1024;
constexpr double COMPUTE_FLOPS = 1e8;

/* Time for each; both together stay below 200 ms with the first use of the memory. */
constexpr int64_t MEMORY_BUDGET_MS = 90;
constexpr int64_t COMPUTE_BUDGET_MS = 40;

void check(const Library &probes, int status, const char *what, int32_t n_threads) {
    if (status != PS_OK) {
        throw Failure(std::string("probe of ") + what + " with " + std::to_string(n_threads) + " threads: " +
                      PS_FUNCTION(probes, ps_status_text)(status) + " (status " + std::to_string(status) +
                      "); try fewer threads");
    }
}

int64_t time_ns(double amount, double per_s) { return std::max<int64_t>(1, std::llrint(amount * 1e9 / per_s)); }

} // namespace

Value measured_sentinels(const Library &probes, int32_t n_threads) {
    /* OpenMP may have bound this thread to one processor, and threads that it starts would share that one. */
    sched_setaffinity(0, sizeof(cpu_set_t), &usable_processors());
    ps_probe_setup setup{n_threads, n_threads == n_usable_processors(), MEMORY_BUDGET_MS};
    ps_bandwidth bandwidth{};
    check(probes, PS_FUNCTION(probes, ps_probe_bandwidth)(&setup, MEMORY_BYTES, &bandwidth), "bandwidth", n_threads);
    setup.budget_ms = COMPUTE_BUDGET_MS;
    ps_rate compute{};
    check(probes, PS_FUNCTION(probes, ps_probe_compute)(&setup, PS_FP32, &compute), "arithmetic on fp32", n_threads);
    return Value::Map{{"memory_ns", time_ns(static_cast<double>(MEMORY_BYTES), bandwidth.read.median_per_s)},
                      {"compute_ns", time_ns(COMPUTE_FLOPS, compute.median_per_s)}};
}

} // namespace perfsuite
