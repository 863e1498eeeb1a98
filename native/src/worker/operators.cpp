#include "operators.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "perfsuite/operator_bench.h"

namespace perfsuite {

namespace {

constexpr int32_t MOST_SAMPLES = 200;

/* From this many rows on arithmetic takes far longer than the weights' way from memory, and fewer of them do. */
constexpr int64_t MANY_TOKENS = 128;
constexpr int64_t FEWER = 4;

double median_of(std::vector<double> samples) {
    std::sort(samples.begin(), samples.end());
    size_t middle = samples.size() / 2;
    return samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2.0;
}

/* What an operator writes and reads, and its parameters, for as long as they are measured. */
struct Alone {
    explicit Alone(const Value &plain) {
        for (const Value &tensor : plain.at("tensors").list()) {
            types.push_back(ggml_type_name(tensor.at("type").text()));
            ps_operator_tensor made{};
            const Value::List &ne = tensor.at("ne").list();
            for (size_t at = 0; at < std::min<size_t>(ne.size(), std::size(made.ne)); at++) {
                made.ne[at] = ne[at].whole();
            }
            tensors.push_back(made);
        }
        for (size_t at = 0; at < tensors.size(); at++) {
            tensors[at].type = types[at].c_str();
        }
        for (const Value &param : plain.at("params").list()) {
            params.push_back(param.whole32());
        }
    }

    void write_to(ps_operator_spec &spec) const {
        spec.tensors = tensors.data();
        spec.n_tensors = static_cast<int32_t>(tensors.size());
        spec.params = params.data();
        spec.n_params = static_cast<int32_t>(params.size());
    }

    std::vector<std::string> types;
    std::vector<ps_operator_tensor> tensors;
    std::vector<int32_t> params;
};

double operator_time_ns(const Library &library, const Value &shape, const Value &plain, const Value &plan) {
    std::string op = shape.at("op").text(), type = ggml_type_name(shape.at("type").text());
    ps_operator_spec spec{};
    spec.op = op.c_str();
    spec.type = type.c_str();
    spec.n_inner = shape.at("n_inner").whole();
    spec.n_outer = shape.at("n_outer").whole();
    spec.n_tokens = shape.at("n_tokens").whole();
    spec.n_heads = shape.at("n_heads").whole();
    spec.n_kv_heads = shape.at("n_kv_heads").whole();
    spec.n_past = shape.at("n_past").whole();
    spec.n_experts = shape.at("n_experts").whole();
    spec.n_used = shape.at("n_used").whole();
    spec.spread_bytes = plan.at("spread_bytes").whole() / (spec.n_tokens < MANY_TOKENS ? 1 : FEWER);
    const Alone alone(plain);
    alone.write_to(spec);
    std::array<double, MOST_SAMPLES> samples;
    std::array<char, 2048> complaint{};
    int32_t n_samples = 0;
    int32_t status = PS_FUNCTION(library, ps_operator_bench)(&spec, plan.at("n_threads").whole32(),
                                                             plan.at("budget_ns").whole(), samples.data(), MOST_SAMPLES,
                                                             &n_samples, complaint.data(), complaint.size());
    if (status != 0 || n_samples < 1) {
        throw Failure(complaint[0] ? complaint.data() : "ggml cannot measure " + op, "EngineError");
    }
    return median_of(std::vector<double>(samples.begin(), samples.begin() + n_samples));
}

} // namespace

std::string ggml_type_name(std::string name) {
    for (char &each : name) {
        each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
    if (name.size() > 1 && name.compare(name.size() - 2, 2, "_k") == 0) {
        name.back() = 'K';
    }
    return name;
}

Value::List operator_times(const Library &library, const Value &plan) {
    Value::List times;
    const Value::List &shapes = plan.at("shapes").list(), &alone = plan.at("alone").list();
    for (size_t at = 0; at < std::min(shapes.size(), alone.size()); at++) {
        times.push_back(operator_time_ns(library, shapes[at], alone[at], plan));
    }
    return times;
}

} // namespace perfsuite
