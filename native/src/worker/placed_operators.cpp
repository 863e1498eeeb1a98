#include "placed_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base64.h"
#include "operators.h"
#include "own_process.h"
#include "text.h"

namespace perfsuite {

namespace {

/* Words of a spec. */
constexpr size_t N_SPEC = 8;

using Complaint = std::array<char, 2048>;

void check(int32_t status, const Complaint &complaint) {
    if (status != 0) {
        throw Failure(complaint[0] ? complaint.data() : "ggml failed without a word", "EngineError");
    }
}

/* The operator that words name from a place on. */
class Spec {
  public:
    Spec(const Words &words, size_t first) {
        if (words.size() != first + N_SPEC) {
            throw Failure("'" + std::string(words[0]) + "' names no operator");
        }
        op_ = words[first];
        type_ = ggml_type_name(std::string(words[first + 1]));
        plain.op = op_.c_str();
        plain.type = type_.c_str();
        int64_t *sizes[] = {&plain.n_inner,  &plain.n_outer,    &plain.n_tokens,
                            &plain.n_heads,  &plain.n_kv_heads, &plain.n_past};
        for (size_t at = 0; at < std::size(sizes); at++) {
            *sizes[at] = number_at(words, first + 2 + at);
        }
    }
    Spec(const Spec &) = delete;
    Spec &operator=(const Spec &) = delete;

    ps_operator_spec plain{};

  private:
    std::string op_, type_;
};

} // namespace

const PlacedOperators::Request PlacedOperators::REQUESTS[8] = {
    {"check", &PlacedOperators::checked},   {"place", &PlacedOperators::placed},
    {"set", &PlacedOperators::set},         {"output", &PlacedOperators::output},
    {"values", &PlacedOperators::values},   {"launch", &PlacedOperators::launched},
    {"time", &PlacedOperators::timed},      {"drop", &PlacedOperators::dropped},
};

PlacedOperators::PlacedOperators(const Library &engine, const Value &plan, Progress &progress)
    : engine_(engine), progress_(progress) {
    const Value *path = plan.find("backend_library");
    Complaint complaint{};
    check(PS_FUNCTION(engine, ps_operator_device_open)(plan.at("subject").text() == "ggml-cpu" ? "CPU" : "OpenCL",
                                                       path ? path->text().c_str() : nullptr,
                                                       plan.at("n_threads").whole32(), &device_, complaint.data(),
                                                       complaint.size()),
          complaint);
    refuse_foreign_libraries(plan.at("library_dir").text()); /* with the backend that was loaded */
}

PlacedOperators::~PlacedOperators() {
    for (auto &[number, placed] : operators_) {
        PS_FUNCTION(engine_, ps_operator_close)(placed.run);
    }
    PS_FUNCTION(engine_, ps_operator_device_close)(device_);
}

std::string PlacedOperators::description() const {
    return machine_description() + " " + PS_FUNCTION(engine_, ps_operator_device_name)(device_);
}

std::optional<std::string> PlacedOperators::answer(const std::string &line) {
    Words words = words_of(std::string_view(line));
    std::string_view asked = words.empty() ? "" : words[0];
    if (asked == "part") {
        content_ += words.size() > 1 ? from_base64(words[1]) : "";
        return std::nullopt;
    }
    for (const Request &request : REQUESTS) {
        if (asked == request.name) {
            return (this->*request.answer)(words);
        }
    }
    throw Failure("a worker was asked for '" + std::string(asked.substr(0, 40)) + "', which is not known");
}

std::string PlacedOperators::checked(const Words &words) {
    Spec spec(words, 1);
    Complaint complaint{};
    check(PS_FUNCTION(engine_, ps_operator_check)(device_, &spec.plain, complaint.data(), complaint.size()), complaint);
    return "";
}

std::string PlacedOperators::placed(const Words &words) {
    Spec spec(words, 2);
    Operator made{nullptr, Value(number_at(words, 1)).whole32(), false};
    Complaint complaint{};
    check(PS_FUNCTION(engine_, ps_operator_open)(device_, &spec.plain, &made.run, complaint.data(), complaint.size()),
          complaint);
    operators_[++n_placed_] = made;
    return std::to_string(n_placed_);
}

std::string PlacedOperators::set(const Words &words) {
    std::string content = std::move(content_);
    content_.clear();
    Operator &placed = operator_of(words);
    Complaint complaint{};
    check(PS_FUNCTION(engine_, ps_operator_set)(placed.run, Value(number_at(words, 2)).whole32(), content.data(),
                                                content.size(), complaint.data(), complaint.size()),
          complaint);
    return "";
}

std::string PlacedOperators::output(const Words &words) {
    Operator &placed = operator_of(words);
    Complaint complaint{};
    int64_t elapsed_ns;
    check(PS_FUNCTION(engine_, ps_operator_clear)(placed.run, complaint.data(), complaint.size()), complaint);
    check(PS_FUNCTION(engine_, ps_operator_compute)(placed.run, 1, &elapsed_ns, complaint.data(), complaint.size()),
          complaint);
    output_.resize(PS_FUNCTION(engine_, ps_operator_output_values)(placed.run));
    check(PS_FUNCTION(engine_, ps_operator_read)(placed.run, output_.data(), output_.size(), complaint.data(),
                                                 complaint.size()),
          complaint);
    return std::to_string(output_.size());
}

std::string PlacedOperators::values(const Words &words) { return told_values(output_.data(), output_.size(), words); }

std::string PlacedOperators::launched(const Words &words) {
    Operator &placed = operator_of(words);
    int64_t most = number_at(words, 2), until_ns = number_at(words, 3), total_ns = 0, fastest_ns = 0;
    for (int64_t n_launches = 0; n_launches < std::max<int64_t>(1, most) && (n_launches == 0 || total_ns < until_ns);
         n_launches++) {
        int64_t took_ns = std::max<int64_t>(1, graph_ns(placed));
        fastest_ns = n_launches == 0 ? took_ns : std::min(fastest_ns, took_ns);
        total_ns += took_ns;
    }
    return std::to_string(fastest_ns);
}

std::string PlacedOperators::timed(const Words &words) {
    int64_t n_launches = std::max<int64_t>(1, number_at(words, 1));
    std::string times;
    for (size_t at = 2; at < words.size(); at++) {
        progress_.step(at - 2);
        Operator &placed = operator_of({words[0], words[at]});
        int64_t fastest_ns = graph_ns(placed);
        for (int64_t launch = 1; launch < n_launches; launch++) {
            fastest_ns = std::min(fastest_ns, graph_ns(placed));
        }
        int64_t share_ns = std::llround(static_cast<double>(fastest_ns) / placed.n_copies);
        times += (times.empty() ? "" : " ") + std::to_string(std::max<int64_t>(1, share_ns));
    }
    return times;
}

std::string PlacedOperators::dropped(const Words &words) {
    Operator &placed = operator_of(words);
    PS_FUNCTION(engine_, ps_operator_close)(placed.run);
    operators_.erase(number_at(words, 1));
    return "";
}

PlacedOperators::Operator &PlacedOperators::operator_of(const Words &words) {
    auto found = operators_.find(number_at(words, 1));
    if (found == operators_.end()) {
        throw Failure("the operator is closed; open another", "EngineError");
    }
    return found->second;
}

int64_t PlacedOperators::graph_ns(Operator &placed) {
    auto compute = PS_FUNCTION(engine_, ps_operator_compute);
    Complaint complaint{};
    int64_t elapsed_ns = 0;
    for (int n_left = placed.is_warm ? 1 : 2; n_left > 0; n_left--) {
        check(compute(placed.run, placed.n_copies, &elapsed_ns, complaint.data(), complaint.size()), complaint);
    }
    placed.is_warm = true;
    return elapsed_ns;
}

void serve_operators(const Library &engine, const Value &plan, Progress &progress) {
    PlacedOperators operators(engine, plan, progress);
    serve_lines(operators.description(), progress, [&](const std::string &line) { return operators.answer(line); });
}

} // namespace perfsuite
