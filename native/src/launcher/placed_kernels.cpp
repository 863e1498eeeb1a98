#include "placed_kernels.h"

#include <algorithm>
#include <cstring>

#include "../worker/base64.h"
#include "../worker/text.h"
#include "perfsuite/clock.h"

namespace perfsuite {

namespace {

/* Most of a build's log that crosses: what hears a worker keeps 64 KiB of a line. */
constexpr size_t MOST_LOG_BYTES = 32 << 10;

/* Launches until START and END can be right. */
constexpr int MOST_LAUNCHES = 5;

/* What a launch takes on the device's clock. */
int64_t execution_ns(const Launch &launch) {
    Stamps stamps{};
    for (int n_left = MOST_LAUNCHES; n_left > 0; n_left--) {
        stamps = launch.run();
        if (0 < stamps.start_ns && stamps.start_ns < stamps.end_ns) {
            return static_cast<int64_t>(stamps.end_ns - stamps.start_ns);
        }
    }
    throw Failure("START is " + std::to_string(stamps.start_ns) + " ns and END " + std::to_string(stamps.end_ns) +
                  ", and so or alike in " + std::to_string(MOST_LAUNCHES) +
                  " launches; expected a START before END, update the driver or measure on another device");
}

} // namespace

PlacedKernels::PlacedKernels(const OpenCl &cl, const Value &plan, Progress &progress)
    : progress_(progress), device_(cl, planned_device(cl, plan), programs_, "") {}

std::string PlacedKernels::description() const { return machine_description() + " " + device_.device.name; }

std::optional<std::string> PlacedKernels::answer(const std::string &line) {
    Words words = words_of(std::string_view(line));
    if (!words.empty() && words[0] == "part") {
        content_ += words.size() > 1 ? from_base64(words[1]) : "";
        return std::nullopt;
    }
    return asked(words);
}

std::string PlacedKernels::asked(const Words &words) {
    std::string_view what = words.empty() ? "" : words[0];
    if (what == "place") {
        return placed();
    }
    if (what == "output") {
        return output(words);
    }
    if (what == "values") {
        return told_values(output_.data(), output_.size(), words);
    }
    if (what == "launch") {
        return launched(words);
    }
    if (what == "time") {
        return timed(words);
    }
    if (what == "drop") {
        launch_of(words, 1);
        launches_.erase(number_at(words, 1));
        return "";
    }
    throw Failure("a worker was asked for '" + std::string(what.substr(0, 40)) + "', which is not known");
}

std::string PlacedKernels::placed() {
    Value described = unpack(std::exchange(content_, ""));
    Value planned = described.at("launch");
    planned.set("program", program(described));
    try {
        auto buffers = std::make_shared<Buffers>(device_, planned);
        auto launch = std::make_unique<Launch>(device_, planned, std::move(buffers));
        launches_[++n_placed_] = std::move(launch);
    } catch (const Unbuilt &failed) {
        return "unbuilt " + to_base64(failed.log.substr(0, MOST_LOG_BYTES));
    }
    return std::to_string(n_placed_);
}

std::string PlacedKernels::output(const Words &words) {
    std::optional<std::string> bytes = launch_of(words, 1).output();
    output_.resize(bytes ? bytes->size() / sizeof(float) : 0);
    if (bytes) {
        std::memcpy(output_.data(), bytes->data(), output_.size() * sizeof(float));
    }
    return std::to_string(output_.size());
}

std::string PlacedKernels::launched(const Words &words) {
    const Launch &launch = launch_of(words, 1);
    int64_t most = number_at(words, 2), until_ns = number_at(words, 3), total_ns = 0, fastest_ns = 0;
    for (int64_t n_launches = 0; n_launches < std::max<int64_t>(1, most) && (n_launches == 0 || total_ns < until_ns);
         n_launches++) {
        int64_t began_ns = ps_now_ns();
        launch.run();
        int64_t took_ns = std::max<int64_t>(1, ps_now_ns() - began_ns);
        fastest_ns = n_launches == 0 ? took_ns : std::min(fastest_ns, took_ns);
        total_ns += took_ns;
    }
    return std::to_string(fastest_ns);
}

std::string PlacedKernels::timed(const Words &words) {
    int64_t n_launches = std::max<int64_t>(1, number_at(words, 1));
    std::string times;
    for (size_t at = 2; at < words.size(); at++) {
        progress_.step(at - 2);
        const Launch &launch = launch_of(words, at);
        int64_t fastest_ns = execution_ns(launch);
        for (int64_t done = 1; done < n_launches; done++) {
            fastest_ns = std::min(fastest_ns, execution_ns(launch));
        }
        times += (times.empty() ? "" : " ") + std::to_string(fastest_ns);
    }
    return times;
}

/* The place of a program among those that are built, or will be. */
size_t PlacedKernels::program(const Value &described) {
    auto [found, is_new] = known_programs_.try_emplace({described.at("source").text(), described.at("options").text()},
                                                       programs_.size());
    if (is_new) {
        programs_.push_back(Value::Map{{"source", found->first.first}, {"options", found->first.second}});
    }
    return found->second;
}

const Launch &PlacedKernels::launch_of(const Words &words, size_t place) const {
    auto found = launches_.find(number_at(words, place));
    if (found == launches_.end()) {
        throw Failure("the launch is closed; open another", "OpenClError");
    }
    return *found->second;
}

void serve_kernels(const OpenCl &cl, const Value &plan, Progress &progress) {
    PlacedKernels kernels(cl, plan, progress);
    serve_lines(kernels.description(), progress, [&](const std::string &line) { return kernels.answer(line); });
}

} // namespace perfsuite
