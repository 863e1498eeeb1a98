#include "probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <dirent.h>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sched.h>
#include <unistd.h>

#include "contention.h"
#include "perfsuite/probe.h"
#include "text.h"

namespace perfsuite {

namespace {

constexpr int64_t KIB = 1024, MIB = 1024 * KIB;

/* The types of number, in the order of `ps_type`. */
constexpr std::array<const char *, 3> TYPES = {"fp32", "int8", "f16"};

/* The functions of the library, each with a share of one budget. */
class Probes {
  public:
    /* Each thread gets one processor of its own where there are as many threads as processors: a scheduler that leaves
     * two spinning threads on one of them would halve the ceilings.  With fewer threads it chooses better than we: which
     * processors are the fast ones. */
    Probes(const Library &library, int32_t n_threads, double budget_ms)
        : library_(library), n_threads_(n_threads), budget_ms_(budget_ms) {}

    ps_bandwidth bandwidth(int64_t working_set_bytes, double share = 1.0) const {
        ps_bandwidth found{};
        ps_probe_setup setup = setup_of(share);
        check(PS_FUNCTION(library_, ps_probe_bandwidth)(&setup, working_set_bytes, &found),
              "bandwidth of " + std::to_string(working_set_bytes) + " bytes");
        return found;
    }

    /* None where the processor has no instruction for the type. */
    std::optional<ps_rate> compute(int type, double share = 1.0) const {
        ps_rate found{};
        ps_probe_setup setup = setup_of(share);
        int status = PS_FUNCTION(library_, ps_probe_compute)(&setup, type, &found);
        if (status == PS_UNSUPPORTED) {
            return std::nullopt;
        }
        check(status, std::string("arithmetic on ") + TYPES.at(static_cast<size_t>(type)));
        return found;
    }

    /* What every processor has. */
    ps_rate present(int type, double share = 1.0) const {
        std::optional<ps_rate> found = compute(type, share);
        if (!found) {
            throw Failure("probe of arithmetic: the library has none for this processor; build it again");
        }
        return *found;
    }

    /* The median cost of an empty operator, at least 1 ns. */
    int64_t dispatch_ns(double share) const {
        ps_latency found{};
        ps_probe_setup setup = setup_of(share);
        check(PS_FUNCTION(library_, ps_probe_dispatch)(&setup, &found), "dispatch");
        return std::max<int64_t>(1, std::llrint(found.median_ns));
    }

  private:
    ps_probe_setup setup_of(double share) const {
        auto budget_ms = std::max<int64_t>(1, static_cast<int64_t>(budget_ms_ * share));
        return {n_threads_, n_threads_ == n_usable_processors(), budget_ms};
    }

    void check(int status, const std::string &what) const {
        if (status != PS_OK) {
            throw Failure("probe of " + what + " with " + std::to_string(n_threads_) + " threads: " +
                          PS_FUNCTION(library_, ps_status_text)(status) + " (status " + std::to_string(status) +
                          "); try fewer threads");
        }
    }

    const Library &library_;
    int32_t n_threads_;
    double budget_ms_;
};

std::vector<std::string> names_in(const std::string &folder, const std::string &prefix) {
    std::vector<std::string> names;
    std::unique_ptr<DIR, int (*)(DIR *)> entries(opendir(folder.c_str()), closedir);
    while (const dirent *entry = entries ? readdir(entries.get()) : nullptr) {
        std::string name = entry->d_name;
        if (name.compare(0, prefix.size(), prefix) == 0 && number_in(std::string_view(name).substr(prefix.size()))) {
            names.push_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

/* The first word of a small file, "" where there is none. */
std::string word_in(const std::string &path) {
    std::string content = read_file(path).value_or("");
    auto words = words_of(content);
    return words.empty() ? "" : std::string(words[0]);
}

/* The bytes of a size as sysfs writes it ("1024K"), 0 where it is none. */
int64_t parsed_size(const std::string &text) {
    constexpr std::string_view UNITS = "KMG";
    size_t unit = text.empty() ? std::string_view::npos : UNITS.find(text.back());
    bool has_unit = unit != std::string_view::npos;
    auto number = number_in(std::string_view(text).substr(0, text.size() - (has_unit ? 1 : 0)));
    int shift = has_unit ? 10 * (static_cast<int>(unit) + 1) : 0;
    return number && *number > 0 && *number < (int64_t{1} << 32) ? *number << shift : 0;
}

/* By level, the bytes that so many threads have at most, spread over as many caches as there are. */
std::map<int64_t, int64_t> cache_sizes(int32_t n_threads, const std::string &cpu_root) {
    std::map<int64_t, std::map<std::string, int64_t>> instances;
    for (const std::string &cpu : names_in(cpu_root, "cpu")) {
        std::string caches = cpu_root + "/" + cpu + "/cache/";
        for (const std::string &index : names_in(caches, "index")) {
            std::string folder = caches + index + "/", shared = word_in(folder + "shared_cpu_list");
            std::string level_text = word_in(folder + "level");
            auto level = number_in(level_text);
            int64_t size = parsed_size(word_in(folder + "size"));
            if (level && size > 0 && word_in(folder + "type") != "Instruction") {
                instances[*level][shared.empty() ? caches : shared] = size;
            }
        }
    }
    std::map<int64_t, int64_t> sums;
    for (const auto &[level, by_place] : instances) {
        std::vector<int64_t> sizes;
        for (const auto &[place, size] : by_place) {
            sizes.push_back(size);
        }
        std::sort(sizes.rbegin(), sizes.rend());
        size_t n_taken = std::min(sizes.size(), static_cast<size_t>(n_threads));
        sums[level] = std::accumulate(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(n_taken), int64_t{0});
    }
    return sums;
}

int64_t physical_memory_bytes() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

} // namespace

int64_t largest_working_set(int32_t n_threads, int64_t over_cache, int64_t memory_bytes, const std::string &cpu_root) {
    int64_t last = 0;
    for (const auto &[level, size] : cache_sizes(n_threads, cpu_root)) {
        last = std::max(last, size);
    }
    return std::min({std::max(over_cache * last, 64 * MIB), 512 * MIB, memory_bytes / 8});
}

std::vector<int64_t> standard_working_sets(int32_t n_threads, int64_t memory_bytes, const std::string &cpu_root) {
    /* Memory's is enough times the last cache that little of it survives a pass. */
    int64_t largest = largest_working_set(n_threads, 4, memory_bytes, cpu_root);
    std::vector<int64_t> sets;
    for (const auto &[level, size] : cache_sizes(n_threads, cpu_root)) {
        if (size / 2 < largest) {
            sets.push_back(size / 2);
        }
    }
    sets.push_back(largest);
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    return sets;
}

Value measured_sentinels(const Library &library, int32_t n_threads) {
    /* Reading 64 MiB, and 100 million multiplications and additions in single precision; both together stay below
     * 200 ms with the first use of the memory.  By the median repetition: a sentinel says how the machine is, not what
     * it could do. */
    constexpr int64_t MEMORY_BYTES = 64 * MIB;
    constexpr double COMPUTE_FLOPS = 1e8, MEMORY_BUDGET_MS = 90.0, COMPUTE_BUDGET_MS = 40.0;
    auto time_ns = [](double amount, double per_s) { return std::max<int64_t>(1, std::llrint(amount * 1e9 / per_s)); };
    /* OpenMP may have bound this thread to one processor, and threads that it starts would share that one. */
    sched_setaffinity(0, sizeof(cpu_set_t), &usable_processors());
    double read_per_s = Probes(library, n_threads, MEMORY_BUDGET_MS).bandwidth(MEMORY_BYTES).read.median_per_s;
    double flops_per_s = Probes(library, n_threads, COMPUTE_BUDGET_MS).present(PS_FP32).median_per_s;
    return Value::Map{{"memory_ns", time_ns(static_cast<double>(MEMORY_BYTES), read_per_s)},
                      {"compute_ns", time_ns(COMPUTE_FLOPS, flops_per_s)}};
}

Value measured_ceilings(const Library &library, int32_t n_threads, int64_t budget_ms) {
    /* Shares of the budget.  Memory has the largest: its passes are long, and first use of its pages counts too. */
    constexpr double MEMORY_SHARE = 0.4, CACHES_SHARE = 0.3, COMPUTE_SHARE = 0.08, DISPATCH_SHARE = 0.06;
    Probes probes(library, n_threads, static_cast<double>(budget_ms));
    std::vector<int64_t> sets = standard_working_sets(n_threads, physical_memory_bytes());
    Value::List bandwidths;
    for (int64_t size : sets) {
        double share = size == sets.back() ? MEMORY_SHARE : CACHES_SHARE / static_cast<double>(sets.size() - 1);
        ps_bandwidth found = probes.bandwidth(size, share);
        bandwidths.push_back(Value::Map{{"working_set_bytes", size},
                                        {"read_bytes_per_s", found.read.best_per_s},
                                        {"copy_bytes_per_s", found.copy.best_per_s},
                                        {"triad_bytes_per_s", found.triad.best_per_s}});
    }
    double fp32 = probes.present(PS_FP32, COMPUTE_SHARE).best_per_s;
    double int8 = probes.present(PS_INT8, COMPUTE_SHARE).best_per_s;
    std::optional<ps_rate> f16 = probes.compute(PS_F16, COMPUTE_SHARE);
    return Value::Map{{"n_threads", n_threads},
                      {"bandwidths", std::move(bandwidths)},
                      {"fp32_flops_per_s", fp32},
                      {"int8_flops_per_s", int8},
                      {"f16_flops_per_s", f16 ? Value(f16->best_per_s) : Value()},
                      {"dispatch_ns", probes.dispatch_ns(DISPATCH_SHARE)}};
}

namespace {

/* What a survey measures once a round: a working set, or with 0 bytes arithmetic on a type of number. */
struct Slot {
    int32_t n_threads;
    int64_t working_set_bytes;
    int type;
    int weight; /* parts of a round's time: memory counts several, and so does each type of number */
};

constexpr int N_ROUNDS = 5; /* over everything, so that what disturbs a minute does not hit one ceiling only */
constexpr int64_t MEMORY_OVER_CACHE = 16; /* the ladder ends where little is left in the last cache */

/* The ladder begins at 32 KiB a thread and grows by a step up to memory. */
void add_slots(std::vector<Slot> &slots, int32_t n_threads, int64_t step) {
    constexpr int MEMORY_WEIGHT = 6, COMPUTE_WEIGHT = 2;
    int64_t largest = largest_working_set(n_threads, MEMORY_OVER_CACHE, physical_memory_bytes());
    for (int64_t rung = 32 * KIB * n_threads; rung < largest; rung *= step) {
        slots.push_back({n_threads, rung, 0, 1});
    }
    slots.push_back({n_threads, largest, 0, MEMORY_WEIGHT});
    for (int type : {PS_FP32, PS_F16, PS_INT8}) {
        slots.push_back({n_threads, 0, type, COMPUTE_WEIGHT});
    }
}

/* The best rate of each kind in one round. */
using Bests = std::map<std::string, double>;

Bests measured(const Library &library, const Slot &slot, double budget_ms) {
    Probes probes(library, slot.n_threads, static_cast<double>(std::max<int64_t>(3, std::llrint(budget_ms))));
    if (slot.working_set_bytes != 0) {
        ps_bandwidth found = probes.bandwidth(slot.working_set_bytes);
        return {{"read", found.read.best_per_s}, {"copy", found.copy.best_per_s}, {"triad", found.triad.best_per_s}};
    }
    std::optional<ps_rate> found = probes.compute(slot.type);
    return found ? Bests{{TYPES.at(static_cast<size_t>(slot.type)), found->best_per_s}} : Bests{};
}

Value ceiling_of(const Slot &slot, const std::string &kind, const std::vector<Bests> &rounds) {
    std::vector<double> bests;
    for (const Bests &round : rounds) {
        if (auto found = round.find(kind); found != round.end()) {
            bests.push_back(found->second);
        }
    }
    std::sort(bests.begin(), bests.end());
    Value rate, missing = "this processor has no multiply-add of " + kind + " that the probe knows";
    if (!bests.empty()) {
        size_t middle = bests.size() / 2;
        double median = bests.size() % 2 ? bests[middle] : (bests[middle - 1] + bests[middle]) / 2.0;
        rate = Value::Map{{"best_per_s", bests.back()}, {"median_per_s", median}, {"n_rounds", bests.size()}};
        missing = "";
    }
    bool is_bandwidth = slot.working_set_bytes != 0;
    return Value::Map{{"processor", "cpu"},
                      {"resource", is_bandwidth ? "bandwidth" : "compute"},
                      {"kind", kind},
                      {"n_threads", slot.n_threads},
                      {"working_set_bytes", is_bandwidth ? Value(slot.working_set_bytes) : Value()},
                      {"rate", std::move(rate)},
                      {"missing", std::move(missing)},
                      {"theoretical_per_s", nullptr},
                      {"theoretical_source", ""}};
}

} // namespace

Value surveyed_ceilings(const Library &library, int32_t n_threads, const std::vector<int32_t> &thread_counts,
                        int64_t budget_ms) {
    constexpr int64_t MAIN_STEP = 2, OTHER_STEP = 4;
    std::vector<Slot> slots;
    add_slots(slots, n_threads, MAIN_STEP);
    for (int32_t other : thread_counts) {
        if (other != n_threads) {
            add_slots(slots, other, OTHER_STEP);
        }
    }
    int n_parts = 0;
    for (const Slot &slot : slots) {
        n_parts += slot.weight;
    }
    double unit_ms = static_cast<double>(budget_ms) / N_ROUNDS / n_parts;
    std::vector<std::vector<Bests>> rounds(slots.size());
    for (int round = 0; round < N_ROUNDS; round++) {
        for (size_t at = 0; at < slots.size(); at++) {
            rounds[at].push_back(measured(library, slots[at], unit_ms * slots[at].weight));
        }
    }
    Value::List ceilings;
    for (size_t at = 0; at < slots.size(); at++) {
        std::vector<std::string> kinds = {"read", "copy", "triad"};
        if (slots[at].working_set_bytes == 0) {
            kinds = {TYPES.at(static_cast<size_t>(slots[at].type))};
        }
        for (const std::string &kind : kinds) {
            ceilings.push_back(ceiling_of(slots[at], kind, rounds[at]));
        }
    }
    return ceilings;
}

} // namespace perfsuite
