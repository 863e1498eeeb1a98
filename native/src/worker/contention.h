/* How long the threads of this process waited for a processor, and what else the machine did meanwhile.
 *
 * Source: Linux, Documentation/scheduler/sched-stats.rst (/proc/PID/task/TID/schedstat: time on the processor, time
 * waiting on a run queue, both ns), proc(5) for `steal` in /proc/stat, and Documentation/scheduler/sched-bwc.rst for
 * `throttled_time` (ns) and `throttled_usec` in cpu.stat.
 */
#ifndef PERFSUITE_WORKER_CONTENTION_H
#define PERFSUITE_WORKER_CONTENTION_H

#include <array>
#include <cstdint>
#include <optional>
#include <sched.h>
#include <vector>

#include "message.h"

namespace perfsuite {

/* The processors that this process may use, asked for before anything binds its threads to some of them. */
const cpu_set_t &usable_processors();
int n_usable_processors();

/* Competition for the processors during one measured stretch; what is not known is missing. */
struct Contention {
    int64_t wall_ns = 0;
    std::optional<int64_t> running_ns; /* on a processor, over all threads */
    std::optional<int64_t> waiting_ns; /* runnable and waiting */
    std::optional<double> steal_ratio; /* share of the machine's processor time that the hypervisor took */
    std::optional<double> others_ratio; /* share of the usable processors that went to others */
    std::optional<int64_t> throttled_ns; /* held back by a quota of this process's control group */

    Value plain() const;
};

/* Several stretches as one; what is not known of one of them is not known of all. */
Contention total(const std::vector<Contention> &stretches);

/* Counters at one instant; two of them make a `Contention`. */
class ContentionMark {
  public:
    static ContentionMark take();
    Contention until(const ContentionMark &later) const;

  private:
    int64_t now_ns_ = 0;
    int64_t own_ns_ = 0; /* processor time of this process, ended threads included */
    std::optional<int64_t> running_ns_;
    std::optional<int64_t> waiting_ns_;
    std::optional<std::array<int64_t, 3>> ticks_; /* of the processors since boot: busy, stolen, in all */
    std::optional<int64_t> throttled_ns_;
};

} // namespace perfsuite

#endif
