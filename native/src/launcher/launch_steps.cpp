#include "launch_steps.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "../worker/sha256.h"
#include "launch_rounds.h"
#include "launches.h"
#include "perfsuite/clock.h"

namespace perfsuite {

namespace {

/* The times of launches, one after the other. */
struct TimeLists {
    Value::List queued, submit, start, end;

    void add(const Stamps &stamps) {
        queued.push_back(stamps.queued_ns);
        submit.push_back(stamps.submit_ns);
        start.push_back(stamps.start_ns);
        end.push_back(stamps.end_ns);
    }
    Value plain() {
        return Value::Map{{"queued_ns", std::move(queued)},
                          {"submit_ns", std::move(submit)},
                          {"start_ns", std::move(start)},
                          {"end_ns", std::move(end)}};
    }
};

std::string digest_of(const std::string &bytes) {
    Sha256 digest;
    digest.add(bytes);
    return digest.hex();
}

/* SHA-256 of each input that a launch writes to. */
Value::List written_inputs(const Launch &launch, const Value &planned) {
    Value::List digests;
    const Value *are_written = planned.find("are_inputs_written");
    if (are_written && are_written->boolean()) {
        const Value::List &contents = planned.at("contents").list();
        for (size_t place = 0; place < contents.size(); place++) {
            auto n_bytes = static_cast<size_t>(contents[place].at("n_bytes").whole());
            digests.push_back(digest_of(launch.input(place, n_bytes)));
        }
    }
    return digests;
}

Value output_of(const Launch &launch, const Value &planned, const Value &step) {
    std::optional<std::string> output = launch.output();
    if (!output) {
        return Value::Map{{"is_guard_whole", false}};
    }
    std::string hex = digest_of(*output);
    const Value::List &known = step.at("known_outputs").list();
    bool is_known = std::any_of(known.begin(), known.end(), [&](const Value &each) { return each.text() == hex; });
    return Value::Map{{"is_guard_whole", true},
                      {"sha256", hex},
                      {"inputs", written_inputs(launch, planned)},
                      {"output", is_known ? Value() : Value(Bytes{std::move(*output)})}};
}

/* A kernel that is timed, by its sides: one, or two that take turns. */
struct TimedKernel {
    std::vector<const Launch *> sides;
    std::vector<TimeLists> times;
    int64_t n_per_round = 0;

    /* Returns how long the last launches took. */
    int64_t warm_up(int64_t n_launches) const {
        int64_t began_ns = ps_now_ns();
        for (; n_launches > 0; n_launches--) {
            began_ns = ps_now_ns();
            for (const Launch *each : sides) {
                each->run();
            }
        }
        return (ps_now_ns() - began_ns) / static_cast<int64_t>(sides.size());
    }
    /* A launch that does not count brings the buffers back into caches. */
    void take_round(int64_t leader) {
        size_t n_sides = sides.size();
        sides[n_sides - 1 - static_cast<size_t>(leader) % n_sides]->run();
        for (int64_t turn = 0; turn < n_per_round; turn++) {
            for (size_t side = 0; side < n_sides; side++) {
                size_t place = (turn + leader) % 2 ? n_sides - 1 - side : side;
                times[place].add(sides[place]->run());
            }
        }
    }
};

std::vector<TimedKernel> timed_kernels(const std::vector<const Launch *> &launches, const Value::List &leaders) {
    size_t n_kernels = leaders.empty() ? 0 : leaders[0].list().size();
    if (!n_kernels || (launches.size() != n_kernels && launches.size() != 2 * n_kernels)) {
        throw Failure("turns of " + std::to_string(launches.size()) + " launches name the leaders of " +
                      std::to_string(n_kernels) + " kernels; expected one or two launches a kernel");
    }
    std::vector<TimedKernel> kernels(n_kernels);
    for (size_t launch = 0; launch < launches.size(); launch++) {
        TimedKernel &kernel = kernels[launch / (launches.size() / n_kernels)];
        kernel.sides.push_back(launches[launch]);
        kernel.times.emplace_back();
    }
    return kernels;
}

/* Times kernels in rounds; a round launches each for its share of the budget. */
Value turns_of(const std::vector<const Launch *> &launches, const Value &step, int64_t began_ns) {
    const Value::List &leaders = step.at("leaders").list();
    std::vector<TimedKernel> kernels = timed_kernels(launches, leaders);
    std::vector<int64_t> lengths_ns;
    for (const TimedKernel &each : kernels) {
        lengths_ns.push_back(std::max<int64_t>(1, each.warm_up(step.at("n_warm_up").whole())));
    }
    int64_t until_ns = began_ns + step.at("budget_ns").whole();
    int64_t share_ns = (until_ns - ps_now_ns()) / static_cast<int64_t>(leaders.size() * launches.size());
    Value::List n_per_round;
    for (size_t place = 0; place < kernels.size(); place++) {
        int64_t n_launches = std::min(std::max(share_ns / lengths_ns[place], step.at("n_turns").whole()),
                                      step.at("n_launches").whole());
        kernels[place].n_per_round = n_launches - n_launches % static_cast<int64_t>(kernels[place].sides.size());
        n_per_round.push_back(kernels[place].n_per_round);
    }
    int64_t round_ns = 0, n_least = step.at("n_least").whole();
    for (size_t round = 0; round < leaders.size(); round++) {
        int64_t round_began_ns = ps_now_ns();
        if (static_cast<int64_t>(round) >= n_least && round_began_ns + round_ns > until_ns) {
            break;
        }
        for (size_t place = 0; place < kernels.size(); place++) {
            kernels[place].take_round(leaders[round].list().at(place).whole());
        }
        round_ns = ps_now_ns() - round_began_ns;
    }
    Value::List times;
    for (TimedKernel &kernel : kernels) {
        for (TimeLists &each : kernel.times) {
            times.push_back(each.plain());
        }
    }
    return Value::Map{{"times", std::move(times)}, {"n_per_round", std::move(n_per_round)}};
}

Value burst_of(const LaunchDevice &device, const Launch &launch, int64_t n_launches) {
    std::vector<ClOwned> events;
    events.reserve(static_cast<size_t>(std::max<int64_t>(n_launches, 0)));
    device.finish();
    int64_t began_ns = ps_now_ns();
    for (int64_t n_left = n_launches; n_left > 0; n_left--) {
        events.push_back(launch.enqueue());
    }
    device.finish();
    int64_t host_ns = ps_now_ns() - began_ns;
    Value::List start, end;
    for (const ClOwned &each : events) {
        Stamps stamps = launch.stamps(each);
        start.push_back(stamps.start_ns);
        end.push_back(stamps.end_ns);
    }
    return Value::Map{{"host_ns", host_ns}, {"start_ns", std::move(start)}, {"end_ns", std::move(end)}};
}

/* The launches of a plan, each open from its first step to its last. */
class OpenLaunches {
  public:
    OpenLaunches(LaunchDevice &device, const Value &plan)
        : device_(device), planned_(plan.at("launches").list()), open_(planned_.size()), buffers_(planned_.size()),
          last_(planned_.size()) {
        const Value::List &steps = plan.at("steps").list();
        for (size_t step = 0; step < steps.size(); step++) {
            for (const Value &each : steps[step].at("launches").list()) {
                last_.at(static_cast<size_t>(each.whole())) = step;
            }
        }
        for (size_t launch = planned_.size(); launch-- > 0;) { /* whose buffers another one has stays as long as that */
            if (const Value *beside = planned_[launch].find("beside")) {
                size_t &last = last_.at(static_cast<size_t>(beside->whole()));
                last = std::max(last, last_[launch]);
            }
        }
    }

    const Launch &at(size_t launch) {
        now_ = launch;
        if (!open_.at(launch)) {
            open_[launch] = std::make_unique<Launch>(device_, planned_[launch], buffers_of(launch));
        }
        return *open_[launch];
    }

    void close_after(size_t step) {
        for (size_t launch = 0; launch < open_.size(); launch++) {
            if (last_[launch] <= step) {
                open_[launch].reset();
                buffers_[launch].reset();
            }
        }
    }

    /* The launch that is or was worked on, and its name. */
    size_t now() const { return now_; }
    const Value &planned() const { return planned_.at(now_); }
    const std::string &name() const { return planned_.at(now_).at("name").text(); }

  private:
    const std::shared_ptr<Buffers> &buffers_of(size_t launch) {
        if (!buffers_[launch]) {
            if (const Value *beside = planned_[launch].find("beside")) {
                auto other = static_cast<size_t>(beside->whole());
                if (other >= launch) {
                    throw Failure("launch " + std::to_string(launch) + " is beside " + std::to_string(other) +
                                  "; expected one before it");
                }
                buffers_[launch] = buffers_of(other);
            } else {
                buffers_[launch] = std::make_shared<Buffers>(device_, planned_[launch]);
            }
        }
        return buffers_[launch];
    }

    LaunchDevice &device_;
    const Value::List &planned_;
    std::vector<std::unique_ptr<Launch>> open_;
    std::vector<std::shared_ptr<Buffers>> buffers_;
    std::vector<size_t> last_;
    size_t now_ = 0;
};

/* What a step answers that may fail, and has: a kernel that does not build, or that the device refuses. */
template <typename Take> Value taken_or_why(const LaunchDevice &device, const OpenLaunches &launches, Take take) {
    try {
        return take();
    } catch (const Unbuilt &failed) {
        return Value::Map{{"unbuilt", failed.log}};
    } catch (const ClRefusal &refusal) {
        bool is_memory = dynamic_cast<const NoMemory *>(&refusal);
        return Value::Map{
            {"refused", launches.name() + ": " + refusal.what() + " on " + device.device.name},
            {"is_memory", is_memory},
        };
    }
}

Value rounds_of(const LaunchDevice &device, OpenLaunches &launches, const Value &step, int64_t began_ns) {
    int64_t target_ns = step.at("target_ns").whole();
    std::vector<RoundWay> ways;
    for (const Value &each : step.at("launches").list()) {
        const Launch *open = nullptr;
        uint32_t passes = 0;
        Value failure = taken_or_why(device, launches, [&] {
            open = &launches.at(static_cast<size_t>(each.whole()));
            passes = passes_that_last(*open, target_ns);
            return Value();
        });
        ways.push_back({failure.is_nil() ? open : nullptr, passes, std::move(failure), {}});
    }
    run_rounds(ways, step.at("n_launches").whole(), step.at("n_least").whole(),
               began_ns + step.at("budget_ns").whole());
    Value::List found;
    for (RoundWay &each : ways) {
        found.push_back(each.launch ? Value(Value::Map{{"passes", each.passes}, {"best_ns", std::move(each.best_ns)}})
                                    : std::move(each.failure));
    }
    return Value::Map{{"ways", std::move(found)}};
}

Value taken_step(const LaunchDevice &device, OpenLaunches &launches, const Value &step, int64_t began_ns) {
    if (step.at("kind").text() == "rounds") {
        return rounds_of(device, launches, step, began_ns);
    }
    std::vector<const Launch *> named;
    for (const Value &each : step.at("launches").list()) {
        named.push_back(&launches.at(static_cast<size_t>(each.whole())));
    }
    const std::string &kind = step.at("kind").text();
    if (named.empty()) {
        throw Failure("a step of kind '" + kind + "' has no launch");
    }
    if (kind == "output") {
        return output_of(*named[0], launches.planned(), step);
    }
    if (kind == "turns") {
        return turns_of(named, step, began_ns);
    }
    if (kind == "burst") {
        return burst_of(device, *named[0], step.at("n_launches").whole());
    }
    throw Failure("a plan has a step of kind '" + kind + "'; known are output, turns, burst, rounds");
}

} // namespace

Value taken_steps(const OpenCl &cl, const Value &plan) {
    int64_t began_ns = ps_now_ns();
    const Value *built_dir = plan.find("built_dir");
    LaunchDevice device(cl, planned_device(cl, plan), plan.at("programs").list(), built_dir ? built_dir->text() : "");
    OpenLaunches launches(device, plan);
    const Value::List &steps = plan.at("steps").list();
    Value::List answers;
    try {
        for (size_t step = 0; step < steps.size(); step++) {
            const Value *may_fail = steps[step].find("may_fail");
            auto take = [&] { return taken_step(device, launches, steps[step], began_ns); };
            bool is_fatal = !may_fail || !may_fail->boolean();
            answers.push_back(is_fatal ? take() : taken_or_why(device, launches, take));
            launches.close_after(step);
        }
    } catch (const Unbuilt &failed) {
        return Value::Map{{"unbuilt", Value::Map{{"launch", launches.now()}, {"log", failed.log}}}};
    } catch (const ClRefusal &refusal) {
        throw Failure(launches.name() + ": " + refusal.what() + " on " + device.device.name, "OpenClError");
    }
    return Value::Map{{"steps", std::move(answers)}};
}

} // namespace perfsuite
