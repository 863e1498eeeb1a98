/* Launches of several kernels in rounds, each of as many passes as last long enough. */
#ifndef PERFSUITE_LAUNCHER_LAUNCH_ROUNDS_H
#define PERFSUITE_LAUNCHER_LAUNCH_ROUNDS_H

#include <cstdint>
#include <vector>

#include "../worker/message.h"
#include "launches.h"

namespace perfsuite {

/* A launch that takes part, or why it cannot. */
struct RoundWay {
    const Launch *launch; /* NULL where it cannot */
    uint32_t passes;
    Value failure;
    Value::List best_ns; /* the fastest of each round; 0 where there was none */
};

/* How many passes a launch has to make to last so long, tried with more and more; they are its last scalar.
 *
 * Raises a `ClRefusal` where the device refuses it. */
uint32_t passes_that_last(const Launch &launch, int64_t target_ns);

/* Runs each way so often in each round, and as many rounds as there is room for until a time, but so many at least. */
void run_rounds(std::vector<RoundWay> &ways, int64_t n_launches, int64_t n_least, int64_t until_ns);

} // namespace perfsuite

#endif
