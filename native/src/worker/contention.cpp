#include "contention.h"

#include <algorithm>
#include <dirent.h>
#include <memory>
#include <unistd.h>

#include "perfsuite/clock.h"
#include "text.h"

namespace perfsuite {

namespace {

cpu_set_t first_affinity() {
    cpu_set_t found;
    CPU_ZERO(&found);
    sched_getaffinity(0, sizeof found, &found);
    return found;
}

const cpu_set_t USABLE = first_affinity();

int64_t process_time_ns() {
    timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<int64_t>(spent.tv_sec) * 1000000000 + spent.tv_nsec;
}

/* Time on a processor and time waiting for one, of all threads; none where the kernel does not say. */
std::optional<std::array<int64_t, 2>> thread_times() {
    std::unique_ptr<DIR, int (*)(DIR *)> tasks(opendir("/proc/self/task"), closedir);
    if (!tasks) {
        return std::nullopt;
    }
    std::array<int64_t, 2> sums{};
    while (const dirent *entry = readdir(tasks.get())) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        std::string content = read_file(std::string("/proc/self/task/") + entry->d_name + "/schedstat").value_or("");
        auto words = words_of(content);
        if (words.size() < 2 || !number_in(words[0]) || !number_in(words[1])) {
            return std::nullopt;
        }
        sums[0] += *number_in(words[0]);
        sums[1] += *number_in(words[1]);
    }
    return sums;
}

/* The sum of the lines "cpuN user nice system idle iowait irq softirq steal ..." of the usable processors. */
std::optional<std::array<int64_t, 3>> processor_ticks() {
    std::string content = read_file("/proc/stat").value_or("");
    std::array<int64_t, 3> sums{};
    bool is_known = false;
    for (std::string_view line : lines_of(content)) {
        auto words = words_of(line);
        if (words.size() < 9 || words[0].substr(0, 3) != "cpu") {
            continue;
        }
        auto processor = number_in(words[0].substr(3));
        if (!processor || *processor >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(*processor), &USABLE)) {
            continue;
        }
        std::array<int64_t, 8> ticks{};
        for (size_t field = 0; field < ticks.size(); field++) {
            auto value = number_in(words[field + 1]);
            if (!value) {
                return std::nullopt;
            }
            ticks[field] = *value;
        }
        auto [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
        int64_t busy = user + nice + system + irq + softirq;
        sums[0] += busy;
        sums[1] += steal;
        sums[2] += busy + idle + iowait + steal;
        is_known = true;
    }
    return is_known ? std::optional(sums) : std::nullopt;
}

/* The files in which the kernel counts how long quotas held this process back: of its control group, which may have
 * changed, and of those above. */
std::vector<std::string> throttling_files() {
    std::vector<std::string> found;
    std::string content = read_file("/proc/self/cgroup").value_or("");
    for (std::string_view line : lines_of(content)) {
        size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string_view::npos) {
            continue;
        }
        std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
        std::string root = "/sys/fs/cgroup";
        if (controllers.find(",cpu,") != std::string::npos) {
            root += "/cpu";
        } else if (controllers != ",,") {
            continue;
        }
        std::string path(line.substr(second + 1));
        while (true) {
            std::string file = root + path + (path.empty() || path.back() == '/' ? "" : "/") + "cpu.stat";
            if (read_file(file)) {
                found.push_back(file);
            }
            if (path.empty() || path == "/") {
                break;
            }
            path.erase(path.rfind('/'));
        }
    }
    return found;
}

std::optional<int64_t> throttled_time_ns() {
    std::optional<int64_t> sum;
    for (const std::string &file : throttling_files()) {
        std::string content = read_file(file).value_or("");
        for (std::string_view line : lines_of(content)) {
            auto words = words_of(line);
            auto number = words.size() == 2 ? number_in(words[1]) : std::nullopt;
            if (number && (words[0] == "throttled_time" || words[0] == "throttled_usec")) {
                sum = sum.value_or(0) + *number * (words[0] == "throttled_usec" ? 1000 : 1);
            }
        }
    }
    return sum;
}

std::optional<int64_t> difference(std::optional<int64_t> first, std::optional<int64_t> last) {
    return first && last ? std::optional(std::max<int64_t>(0, *last - *first)) : std::nullopt;
}

template <typename Field> std::optional<int64_t> sum_of(const std::vector<Contention> &stretches, Field field) {
    int64_t sum = 0;
    for (const Contention &each : stretches) {
        if (!(each.*field)) {
            return std::nullopt;
        }
        sum += *(each.*field);
    }
    return sum;
}

template <typename Field> std::optional<double> mean_of(const std::vector<Contention> &stretches, Field field) {
    double sum = 0.0, weight = 0.0;
    for (const Contention &each : stretches) {
        if (!(each.*field)) {
            return std::nullopt;
        }
        sum += *(each.*field) * static_cast<double>(each.wall_ns);
        weight += static_cast<double>(each.wall_ns);
    }
    return weight > 0.0 ? std::optional(sum / weight) : std::nullopt;
}

template <typename Held> Value plain_of(const std::optional<Held> &value) { return value ? Value(*value) : Value(); }

} // namespace

const cpu_set_t &usable_processors() { return USABLE; }

int n_usable_processors() { return CPU_COUNT(&USABLE); }

Value Contention::plain() const {
    return Value::Map{{"wall_ns", wall_ns},
                      {"running_ns", plain_of(running_ns)},
                      {"waiting_ns", plain_of(waiting_ns)},
                      {"steal_ratio", plain_of(steal_ratio)},
                      {"others_ratio", plain_of(others_ratio)},
                      {"throttled_ns", plain_of(throttled_ns)}};
}

Contention total(const std::vector<Contention> &stretches) {
    Contention found;
    for (const Contention &each : stretches) {
        found.wall_ns += each.wall_ns;
    }
    found.running_ns = sum_of(stretches, &Contention::running_ns);
    found.waiting_ns = sum_of(stretches, &Contention::waiting_ns);
    found.steal_ratio = mean_of(stretches, &Contention::steal_ratio);
    found.others_ratio = mean_of(stretches, &Contention::others_ratio);
    found.throttled_ns = sum_of(stretches, &Contention::throttled_ns);
    return found;
}

ContentionMark ContentionMark::take() {
    ContentionMark mark;
    if (auto times = thread_times()) {
        mark.running_ns_ = (*times)[0];
        mark.waiting_ns_ = (*times)[1];
    }
    mark.now_ns_ = ps_now_ns();
    mark.own_ns_ = process_time_ns();
    mark.ticks_ = processor_ticks();
    mark.throttled_ns_ = throttled_time_ns();
    return mark;
}

Contention ContentionMark::until(const ContentionMark &later) const {
    Contention found;
    found.wall_ns = later.now_ns_ - now_ns_;
    found.running_ns = difference(running_ns_, later.running_ns_);
    found.waiting_ns = difference(waiting_ns_, later.waiting_ns_);
    found.throttled_ns = difference(throttled_ns_, later.throttled_ns_);
    if (ticks_ && later.ticks_ && (*later.ticks_)[2] > (*ticks_)[2]) {
        double tick_ns = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));
        double busy = static_cast<double>((*later.ticks_)[0] - (*ticks_)[0]);
        double steal = static_cast<double>((*later.ticks_)[1] - (*ticks_)[1]);
        double in_all = static_cast<double>((*later.ticks_)[2] - (*ticks_)[2]);
        found.steal_ratio = steal / in_all;
        found.others_ratio = std::max(0.0, busy - static_cast<double>(later.own_ns_ - own_ns_) / tick_ns) / in_all;
    }
    return found;
}

} // namespace perfsuite
