/* Launches of kernels that a desk places, makes and reads, a line each. */
#ifndef PERFSUITE_LAUNCHER_PLACED_KERNELS_H
#define PERFSUITE_LAUNCHER_PLACED_KERNELS_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../worker/message.h"
#include "../worker/told_lines.h"
#include "launches.h"

namespace perfsuite {

/* The launches of one device.  Requests are words, and H is the number of a launch.
 *
 *     part BASE64             has no answer: bytes behind those that came before
 *     place                   H of a new one, which the bytes that came describe in MessagePack: its source, options and
 *                             launch, a `PlannedLaunch` with its contents themselves; or "unbuilt" and the log in base 64
 *     output H                makes it once on a poisoned output; how many values of F32 it has, 0 where the kernel wrote
 *                             behind them
 *     values FIRST NUMBER     so many of them, in base 64
 *     launch H MOST UNTIL_NS  makes it, at most so often and until so much has passed: the fastest by this process's
 *                             clock, its start and waiting included
 *     time N H H ...          makes each so often: the fastest of it, by the device's clock
 *     drop H */
class PlacedKernels {
  public:
    /* Opens the device of a `LaunchSessionPlan`. */
    PlacedKernels(const OpenCl &cl, const Value &plan, Progress &progress);

    /* The machine, its memory in bytes, and the device's name. */
    std::string description() const;

    /* Does what a line asks for, and returns the answer, if it has one; a `Failure` is one, too. */
    std::optional<std::string> answer(const std::string &line);

  private:
    std::string asked(const Words &words);
    std::string placed();
    std::string output(const Words &words);
    std::string launched(const Words &words);
    std::string timed(const Words &words);

    size_t program(const Value &described);
    const Launch &launch_of(const Words &words, size_t place) const;

    Progress &progress_;
    Value::List programs_;
    std::map<std::pair<std::string, std::string>, size_t> known_programs_;
    LaunchDevice device_;
    std::map<int64_t, std::unique_ptr<Launch>> launches_;
    int64_t n_placed_ = 0;
    std::string content_;
    std::vector<float> output_;
};

/* Opens the device of a plan and answers line after line of the input, until it ends. */
void serve_kernels(const OpenCl &cl, const Value &plan, Progress &progress);

} // namespace perfsuite

#endif
