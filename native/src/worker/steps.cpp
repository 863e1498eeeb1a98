#include "steps.h"

#include <array>
#include <cstring>

#include "perfsuite/cl_layer.h"
#include "text.h"

namespace perfsuite {

Layer::Layer(const Value &arguments) {
    if (const Value *path = arguments.find("layer_library")) {
        path_ = path->text();
    }
}

const Library &Layer::library() {
    if (path_.empty()) {
        throw Failure("the plan of these steps names no OpenCL layer");
    }
    if (!library_) {
        library_.emplace(path_, Library::Loading::THERE_ALREADY);
    }
    return *library_;
}

namespace {

/* The numbers behind a line's first word. */
template <size_t N> std::array<int64_t, N> numbers_of(const std::vector<std::string_view> &words) {
    std::array<int64_t, N> numbers{};
    for (size_t at = 0; at < N; at++) {
        auto number = at + 1 < words.size() ? number_in(words[at + 1]) : std::nullopt;
        if (!number) {
            throw Failure("a step of a worker, '" + std::string(words[0]) + "', lacks a number");
        }
        numbers[at] = *number;
    }
    return numbers;
}

int32_t narrow(int64_t number) { return Value(number).whole32(); }

/* The rest of a line behind so many words. */
std::string rest_of(const std::string &line, const std::vector<std::string_view> &words, size_t n_words) {
    return words.size() > n_words ? line.substr(static_cast<size_t>(words[n_words].data() - line.data())) : "";
}

std::string duplicated(Layer &layer, const std::string &line, const std::vector<std::string_view> &words) {
    auto [skip, n_duplicates, n_rounds] = numbers_of<3>(words);
    ps_cl_duplication plan{};
    plan.skip = narrow(skip);
    plan.n_duplicates = narrow(n_duplicates);
    plan.n_rounds = narrow(n_rounds);
    std::strncpy(plan.name, rest_of(line, words, 4).c_str(), sizeof plan.name - 1);
    return PS_FUNCTION(layer.library(), ps_cl_duplicate)(&plan) ? "1" : "0";
}

std::string rounds_of(Layer &layer, int64_t capacity) {
    constexpr int64_t MOST = 100000;
    if (capacity < 1 || capacity > MOST) {
        throw Failure("a worker cannot hand over " + std::to_string(capacity) + " rounds");
    }
    std::vector<ps_cl_round> rounds(static_cast<size_t>(capacity));
    std::array<char, 1024> complaint{};
    int32_t n_found = PS_FUNCTION(layer.library(), ps_cl_duplication_rounds)(rounds.data(), narrow(capacity),
                                                                             complaint.data(), complaint.size());
    std::string answer = std::to_string(n_found);
    if (n_found < 0) {
        return answer + " " + complaint.data();
    }
    for (int32_t at = 0; at < n_found; at++) {
        const ps_cl_round &round = rounds[static_cast<size_t>(at)];
        for (int64_t each : {round.base_ns, round.duplicated_ns, round.base_execution_ns, round.duplicates_execution_ns,
                             round.duplicates_occupied_ns}) {
            answer += " " + std::to_string(each);
        }
    }
    return answer;
}

} // namespace

std::string taken_step(Engine &engine, Layer &layer, const std::string &line, std::vector<Contention> &runs) {
    std::vector<std::string_view> words = words_of(line);
    std::string_view step = words.empty() ? "" : words[0];
    if (step == "warm_up") {
        auto [n_prompt, n_gen, n_depth] = numbers_of<3>(words);
        engine.warm_up({narrow(n_prompt), narrow(n_gen), narrow(n_depth), 1});
        return "";
    }
    if (step == "run") {
        auto [n_prompt, n_gen, n_depth, n_repetitions] = numbers_of<4>(words);
        ContentionMark before = ContentionMark::take();
        engine.run({narrow(n_prompt), narrow(n_gen), narrow(n_depth), narrow(n_repetitions)});
        runs.push_back(before.until(ContentionMark::take()));
        return "";
    }
    if (step == "duplicate") {
        return duplicated(layer, line, words);
    }
    if (step == "forget") {
        return PS_FUNCTION(layer.library(), ps_cl_duplicate)(nullptr) ? "1" : "0";
    }
    if (step == "rounds") {
        return rounds_of(layer, numbers_of<1>(words)[0]);
    }
    if (step == "flush") {
        return PS_FUNCTION(layer.library(), ps_cl_flush)(numbers_of<1>(words)[0]) ? "1" : "0";
    }
    throw Failure("a worker was asked for the step '" + line + "', which is not known");
}

} // namespace perfsuite
