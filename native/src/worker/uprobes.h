/* Kernel probes on the functions of this very process: a tracer of phases that shares no code with what it checks.
 *
 * Every entry and return traps into the kernel, which reads its own clock; a trap takes a microsecond or two, so short
 * phases are better left to the interposed tracer.  Needs root or CAP_PERFMON.
 *
 * Source: Linux, perf_event_open(2), and Documentation/trace/uprobetracer.rst for the PMU "uprobe".
 */
#ifndef PERFSUITE_WORKER_UPROBES_H
#define PERFSUITE_WORKER_UPROBES_H

#include <memory>
#include <string>
#include <vector>

#include "library.h"
#include "message.h"

namespace perfsuite {

/* Probes at entry and return of functions that the calling thread makes, taken away with it. */
class Uprobes {
  public:
    /* Attaches to functions as the library and what it depends on have them, not counting yet.  A `Failure` where this
     * kernel has no such probes, this user may not set them, or a function is not there. */
    Uprobes(const Library &library, const Value::List &functions);
    ~Uprobes();

    void count(bool is_counting) const;

    /* By function, what the kernel has written at its entries and at its returns: records as in perf_event_open(2). */
    Value rings() const;

  private:
    struct Ring;
    std::vector<std::pair<std::string, std::unique_ptr<Ring>>> rings_; /* of each function two: entry, return */
};

} // namespace perfsuite

#endif
