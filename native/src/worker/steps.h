/* What a worker does that is led from outside: a line asks for a step, and another one answers it.
 *
 *     warm_up N_PROMPT N_GEN N_DEPTH                  leaves no trace
 *     run N_PROMPT N_GEN N_DEPTH N_REPETITIONS        adds to the record
 *     duplicate SKIP N_DUPLICATES N_ROUNDS KERNEL     arms the OpenCL layer; answers 1, or 0 where it does not take it
 *     forget                                          takes a duplication back
 *     rounds CAPACITY                                 answers their number, or -1 and why, and the numbers of each
 *     flush LIMIT_NS                                  answers 1 once all that was recorded is in the layer's log, else 0
 */
#ifndef PERFSUITE_WORKER_STEPS_H
#define PERFSUITE_WORKER_STEPS_H

#include <optional>
#include <string>
#include <vector>

#include "contention.h"
#include "engine.h"
#include "library.h"

namespace perfsuite {

/* The OpenCL layer that the environment brings in, where a plan names one. */
class Layer {
  public:
    explicit Layer(const Value &arguments);
    /* A `Failure` where the plan names none, or the loader has not brought it in. */
    const Library &library();

  private:
    std::string path_;
    std::optional<Library> library_;
};

/* Does what a line asks for, and returns the answer; runs add their contention.  A `Failure` where the line asks for
 * nothing that is known, or it fails. */
std::string taken_step(Engine &engine, Layer &layer, const std::string &line, std::vector<Contention> &runs);

} // namespace perfsuite

#endif
