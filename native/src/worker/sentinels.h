/* Two fixed pieces of work beside the cases, one bound by memory and one by arithmetic. */
#ifndef PERFSUITE_WORKER_SENTINELS_H
#define PERFSUITE_WORKER_SENTINELS_H

#include <cstdint>

#include "library.h"
#include "message.h"

namespace perfsuite {

/* How long each takes on the threads that the cases have: after the measurement, which they must not disturb.
 *
 * Raises a `Failure` where a probe refused its arguments or could not get its memory or threads. */
Value measured_sentinels(const Library &probes, int32_t n_threads);

} // namespace perfsuite

#endif
