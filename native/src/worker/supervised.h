/* Work in a process of its own, which may crash or hang at a step that it has marked. */
#ifndef PERFSUITE_WORKER_SUPERVISED_H
#define PERFSUITE_WORKER_SUPERVISED_H

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace perfsuite {

/* How far the work is, in memory that both processes see; neither waits for the other. */
class Progress {
  public:
    /* Another step begins, at so many of what was asked for. */
    void step(size_t place) {
        place_ = static_cast<int64_t>(place);
        n_steps_++;
        is_resting_ = false;
    }
    /* Nothing is asked for until the next step, so that silence is no hanging. */
    void rest() { is_resting_ = true; }

    bool is_resting() const { return is_resting_; }
    int64_t n_steps() const { return n_steps_; }
    int64_t place() const { return place_; }

    /* Why the work gave up by itself, of so many bytes at most. */
    std::array<char, 2048> failure{};

  private:
    std::atomic<int64_t> n_steps_{0}, place_{0};
    std::atomic<bool> is_resting_{false};
};

/* Where the work was when its process died or hung, and how: "signal 11", "exit 3", "hung". */
struct Crash {
    int64_t place;
    std::string how;
};

/* Does the work in a child process, and waits for its end; one that goes on longer than `step_limit_s` without a step is
 * killed.  Returns how it crashed, if it did.
 *
 * Raises a `Failure` as the work did. */
std::optional<Crash> supervised(double step_limit_s, const std::function<void(Progress &)> &work);

} // namespace perfsuite

#endif
