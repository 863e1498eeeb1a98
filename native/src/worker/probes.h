/* What the probe library measures, as plans and records have it: ceilings, their survey, and the sentinels. */
#ifndef PERFSUITE_WORKER_PROBES_H
#define PERFSUITE_WORKER_PROBES_H

#include <cstdint>
#include <string>
#include <vector>

#include "library.h"
#include "message.h"

namespace perfsuite {

/* How long two fixed pieces of work take on the threads that the cases have: `Sentinels.to_plain`
 * (perfsuite/measure/probes.py).  They run after the measurement, which they must not disturb. */
Value measured_sentinels(const Library &probes, int32_t n_threads);

/* The standard set of ceilings in about a budget: `Ceilings.to_plain` (perfsuite/records/ceilings.py).
 *
 * Bandwidth is measured at one working set for each cache level and one for memory.  Raises a `Failure` where a probe
 * refused its arguments or could not get its memory or threads. */
Value measured_ceilings(const Library &probes, int32_t n_threads, int64_t budget_ms);

/* A survey: a ladder of working sets and all types of number, fine for `n_threads` and coarse for the other counts: a
 * list of `Ceiling.to_plain` (perfsuite/expectation/roofline/ceiling.py). */
Value surveyed_ceilings(const Library &probes, int32_t n_threads, const std::vector<int32_t> &thread_counts,
                        int64_t budget_ms);

/* One working set for each cache level, half of what so many threads have of it, and one for memory. */
std::vector<int64_t> standard_working_sets(int32_t n_threads, int64_t memory_bytes,
                                           const std::string &cpu_root = "/sys/devices/system/cpu");

/* So many times the last cache, between 64 and 512 MiB and at most an eighth of the machine's memory. */
int64_t largest_working_set(int32_t n_threads, int64_t over_cache, int64_t memory_bytes,
                            const std::string &cpu_root = "/sys/devices/system/cpu");

} // namespace perfsuite

#endif
