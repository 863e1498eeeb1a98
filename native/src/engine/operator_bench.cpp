// Graphs of one operator; see perfsuite/operator_bench.h.

#include "perfsuite/operator_bench.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "operator_graph.h"
#include "operator_tensors.h"
#include "perfsuite/clock.h"

namespace {

using perfsuite::backend_ptr;
using perfsuite::buffer_ptr;
using perfsuite::context_ptr;
using perfsuite::failure;
using perfsuite::make_context;

[[noreturn]] void fail(const std::string &text) { throw failure{text}; }

constexpr int64_t kv_padding = 256;           // the engine rounds the visible cache up to this many positions
constexpr int64_t graph_ns = 10'000'000;      // long enough to bury the start of a graph, short enough for many samples
constexpr int64_t least_nodes = 64;           // where they are small, or nothing has to be streamed from memory
constexpr int64_t small_bytes = 1 << 22;
constexpr size_t alignment = 64;
constexpr int64_t activation_bytes = 1 << 23;
constexpr int64_t most_nodes = 2048;
constexpr int64_t drawn_rows = 32; // distinct rows of random weights; the rest repeat them

// One operator with everything that it reads, at any number of copies.
class bench {
public:
    bench(const ps_operator_spec &spec, int32_t n_threads)
        : spec_(spec), op_(spec.op), type_(perfsuite::known_type(spec.type)) {
        ggml_log_set([](ggml_log_level, const char *, void *) {}, nullptr); // it tells of each repacked weight
        device_ = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
        backend_.reset(device_ ? ggml_backend_dev_init(device_, nullptr) : nullptr);
        if (!backend_) {
            fail("ggml has no CPU backend");
        }
        ggml_backend_cpu_set_n_threads(backend_.get(), n_threads);
        n_kv_ = (spec.n_past + spec.n_tokens + kv_padding - 1) / kv_padding * kv_padding;
        make_inputs();
        make_weights();
    }

    void measure(int64_t budget_ns, std::vector<double> &samples_ns, size_t max_samples) {
        const int64_t first_ns = time_graph(graph_of(0, 1));
        const auto fitting = static_cast<size_t>(std::max<int64_t>(1, graph_ns / std::max<int64_t>(1, first_ns)));
        const size_t n_nodes = std::min(n_copies_, fitting);
        std::vector<graph> graphs;
        for (size_t first = 0; first + n_nodes <= n_copies_; first += n_nodes) {
            graphs.push_back(graph_of(first, n_nodes));
        }
        if (n_nodes > 1) { // one alone has been warmed up already
            time_graph(graphs.front());
        }
        const int64_t end_ns = ps_now_ns() + budget_ns;
        const size_t least_samples = first_ns < budget_ns ? 3 : 2;
        for (size_t turn = 1; samples_ns.size() < max_samples; turn++) {
            const int64_t took_ns = time_graph(graphs[turn % graphs.size()]);
            samples_ns.push_back(static_cast<double>(took_ns) / static_cast<double>(n_nodes));
            if (ps_now_ns() >= end_ns && samples_ns.size() >= least_samples) {
                break;
            }
        }
    }

private:
    struct graph {
        context_ptr context;
        buffer_ptr buffer;
        ggml_cgraph *nodes;
    };

    ps_operator_spec spec_;
    std::string op_;
    ggml_type type_;
    int64_t n_kv_ = 0;
    size_t n_copies_ = 0, n_inputs_ = 1;
    ggml_backend_dev_t device_ = nullptr;
    backend_ptr backend_;
    context_ptr input_context_, weight_context_;
    buffer_ptr input_buffer_, weight_buffer_;
    std::vector<ggml_tensor *> x_, y_; // so many that an operator finds them in no core's own cache
    ggml_tensor *mask_ = nullptr;
    std::vector<ggml_tensor *> ids_; // several where each reads other experts
    std::vector<ggml_tensor *> weights_, values_;
    std::vector<std::vector<ggml_tensor *>> sources_; // of an operator that is built of its tensors alone
    ggml_tensor *every_thread_ = nullptr; // what is copied beside these, for ggml takes as many threads as a graph asks
    std::mt19937 random_{1};

    bool is(const char *op) const { return op_ == op; }

    // Whether it is built in a way of its own.
    bool has_own_way() const {
        const auto ways = {"MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT", "RMS_NORM+MUL", "ROPE",
                           "SOFT_MAX", "CONCAT", "GET_ROWS", "SET_ROWS", "CPY"};
        return std::any_of(ways.begin(), ways.end(), [this](const char *way) { return is(way); });
    }

    int64_t heads() const { return std::max<int64_t>(1, spec_.n_heads); }

    void make_inputs() {
        if (has_own_way()) {
            make_own_inputs();
        } else {
            make_sources();
        }
    }

    void make_sources() {
        n_inputs_ = sets_of(static_cast<int64_t>(perfsuite::operator_bytes(spec_)));
        input_context_ = make_context(n_inputs_ * GGML_MAX_SRC + 2, 0);
        every_thread_ = ggml_new_tensor_1d(input_context_.get(), GGML_TYPE_F32, 1);
        for (size_t i = 0; i < n_inputs_; i++) {
            sources_.push_back(perfsuite::source_tensors(input_context_.get(), spec_));
        }
        context_ptr context = make_context(1, 0);
        if (!ggml_backend_dev_supports_op(device_, node(context.get(), 0))) {
            fail("ggml does not compute " + op_ + " of these tensors");
        }
        input_buffer_.reset(ggml_backend_alloc_ctx_tensors(input_context_.get(), backend_.get()));
        if (!input_buffer_) {
            fail("no memory for the inputs of " + op_);
        }
        for (const auto &set : sources_) {
            for (ggml_tensor *source : set) {
                perfsuite::draw_tensor(source, spec_, random_);
            }
        }
    }

    void make_own_inputs() {
        const size_t n_choices = is("MUL_MAT_ID") ? choices() : 1;
        n_inputs_ = is("MUL_MAT") || is("MUL_MAT_ID") ? 1 : activation_sets();
        input_context_ = make_context(2 * n_inputs_ + 1 + n_choices, 0);
        ggml_context *context = input_context_.get();
        const int64_t n = spec_.n_tokens;
        for (size_t i = 0; i < n_inputs_; i++) {
            x_.push_back(new_input(spec_.n_inner));
            y_.push_back(new_input(spec_.n_inner));
        }
        const int64_t width = is("MUL_MAT_ID") ? spec_.n_used : 1;
        for (size_t i = 0; i < n_choices; i++) {
            ids_.push_back(is("SET_ROWS") ? ggml_new_tensor_1d(context, GGML_TYPE_I64, n)
                           : is("MUL_MAT_ID") ? ggml_new_tensor_2d(context, GGML_TYPE_I32, width, n)
                                              : ggml_new_tensor_1d(context, GGML_TYPE_I32, n));
        }
        const bool in_f16 = is("FLASH_ATTN_EXT");
        mask_ = in_f16 ? ggml_new_tensor_2d(context, GGML_TYPE_F16, n_kv_, perfsuite::mask_rows(n))
                       : ggml_new_tensor_2d(context, GGML_TYPE_F32, spec_.n_inner, n);
        input_buffer_.reset(ggml_backend_alloc_ctx_tensors(context, backend_.get()));
        if (!input_buffer_) {
            fail("no memory for the inputs of " + op_);
        }
        for (size_t i = 0; i < n_inputs_; i++) {
            fill_floats(x_[i]);
            fill_floats(y_[i]);
        }
        for (size_t choice = 0; choice < ids_.size(); choice++) {
            fill_ids(ids_[choice], choice);
        }
        fill_mask();
    }

    ggml_tensor *new_input(int64_t k) {
        ggml_context *context = input_context_.get();
        const int64_t n = spec_.n_tokens;
        if (is("FLASH_ATTN_EXT") || is("ROPE")) {
            return ggml_new_tensor_3d(context, GGML_TYPE_F32, k, heads(), n);
        }
        if (is("MUL_MAT") || is("SOFT_MAX")) {
            return ggml_new_tensor_3d(context, GGML_TYPE_F32, k, n, heads());
        }
        if (is("MUL_MAT_ID")) {
            return ggml_new_tensor_3d(context, GGML_TYPE_F32, k, 1, n);
        }
        return ggml_new_tensor_2d(context, GGML_TYPE_F32, k, n);
    }

    // Two operands and the output of each operator, until they exceed what a core has for itself.
    size_t activation_sets() const {
        return sets_of(3 * spec_.n_inner * spec_.n_tokens * heads() * static_cast<int64_t>(sizeof(float)));
    }

    static size_t sets_of(int64_t bytes) {
        return static_cast<size_t>(std::clamp<int64_t>(activation_bytes / std::max<int64_t>(1, bytes), 1, least_nodes));
    }

    void make_weights() {
        const size_t bytes = weight_bytes();
        if (bytes == 0) {
            n_copies_ = least_nodes;
            return;
        }
        const auto spread = static_cast<size_t>(std::max<int64_t>(small_bytes, spec_.spread_bytes));
        const size_t n_weights = std::clamp<size_t>((spread + bytes - 1) / bytes, 1, most_nodes);
        n_copies_ = n_weights * ids_.size();
        weight_context_ = make_context(2 * n_weights, 0);
        for (size_t i = 0; i < n_weights; i++) {
            weights_.push_back(new_weight());
            if (is("FLASH_ATTN_EXT")) {
                values_.push_back(new_weight());
            }
        }
        weight_buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(weight_context_.get(), buffer_type()));
        if (!weight_buffer_) {
            fail("no memory for " + std::to_string(n_weights) + " weights of " + op_);
        }
        const std::vector<char> drawn = draw_weight(weights_.front());
        for (ggml_tensor *tensor = ggml_get_first_tensor(weight_context_.get()); tensor;
             tensor = ggml_get_next_tensor(weight_context_.get(), tensor)) {
            ggml_backend_tensor_set(tensor, drawn.data(), 0, drawn.size());
        }
    }

    // Elements of a row, rows, and how many such; nothing where there are no weights.
    std::array<int64_t, 3> weight_shape() const {
        const int64_t k = spec_.n_inner, m = spec_.n_outer;
        if (is("MUL_MAT")) {
            return {k, m, std::max<int64_t>(1, spec_.n_kv_heads)};
        }
        if (is("MUL_MAT_ID")) {
            return {k, m, spec_.n_experts};
        }
        if (is("FLASH_ATTN_EXT")) {
            return {k, spec_.n_kv_heads, n_kv_};
        }
        if (is("RMS_NORM+MUL")) {
            return {k, 1, 1};
        }
        return is("GET_ROWS") || is("SET_ROWS") ? std::array<int64_t, 3>{k, m, 1} : std::array<int64_t, 3>{};
    }

    ggml_tensor *new_weight() {
        return ggml_new_tensor(weight_context_.get(), type_, 3, weight_shape().data());
    }

    size_t weight_bytes() const {
        const auto [width, n_rows, n_more] = weight_shape();
        const size_t bytes = ggml_row_size(type_, width) * static_cast<size_t>(n_rows * n_more);
        return is("FLASH_ATTN_EXT") ? 2 * bytes : bytes;
    }

    ggml_backend_buffer_type_t buffer_type() {
        const bool is_parameter = (is("MUL_MAT") && spec_.n_heads == 0) || is("MUL_MAT_ID");
        if (!is_parameter) {
            return ggml_backend_dev_buffer_type(device_);
        }
        context_ptr context = make_context(4, 0);
        return perfsuite::parameter_place(device_, weights_.front(), node(context.get(), 0));
    }

    ggml_tensor *node(ggml_context *context, size_t at) {
        if (!sources_.empty()) {
            return perfsuite::operator_of(context, spec_, sources_[at % n_inputs_]);
        }
        ggml_tensor *weight = weights_.empty() ? nullptr : weights_[at % weights_.size()];
        ggml_tensor *x = x_[at % n_inputs_], *y = y_[at % n_inputs_];
        ggml_tensor *ids = ids_[weights_.empty() ? 0 : at / weights_.size() % ids_.size()];
        if (is("MUL_MAT")) {
            return ggml_mul_mat(context, weight, x);
        }
        if (is("MUL_MAT_ID")) {
            return ggml_mul_mat_id(context, weight, x, ids);
        }
        if (is("FLASH_ATTN_EXT")) {
            return perfsuite::attention_node(context, x, weight, values_[at % values_.size()], mask_);
        }
        if (is("RMS_NORM+MUL")) {
            return ggml_mul(context, ggml_rms_norm(context, x, 1e-5f), weight);
        }
        if (is("ROPE")) {
            return ggml_rope_ext(context, x, ids, nullptr, static_cast<int>(spec_.n_inner), 0, 4096, 10000.0f, 1.0f,
                                 0.0f, 1.0f, 32.0f, 1.0f);
        }
        if (is("SOFT_MAX")) {
            return ggml_soft_max_ext(context, x, mask_, 1.0f, 0.0f);
        }
        if (is("CONCAT")) { // two halves of a row
            const int64_t k = spec_.n_inner, n = spec_.n_tokens;
            return ggml_concat(context, ggml_view_2d(context, x, k / 2, n, x->nb[1], 0),
                               ggml_view_2d(context, y, k - k / 2, n, y->nb[1], 0), 0);
        }
        if (is("GET_ROWS")) {
            return ggml_get_rows(context, weight, ids);
        }
#ifndef PS_LACKS_GGML_SET_ROWS
        if (is("SET_ROWS")) {
            return ggml_set_rows(context, weight, x, ids);
        }
#endif
        if (is("CPY")) {
            return ggml_cpy(context, x, y);
        }
        fail("the operator " + op_ + " cannot be measured alone");
    }

    // Nobody reads the outputs, so they share a few places, as they do in the engine.
    graph graph_of(size_t first, size_t n_nodes) {
        const size_t most = (GGML_MAX_SRC + 1) * (n_nodes + 1);
        graph made{make_context(most, most), nullptr, nullptr};
        made.nodes = ggml_new_graph_custom(made.context.get(), most, false);
        if (every_thread_) {
            ggml_build_forward_expand(made.nodes, ggml_cont(made.context.get(), every_thread_));
        }
        size_t largest = 0;
        for (size_t i = 0; i < n_nodes; i++) {
            ggml_build_forward_expand(made.nodes, node(made.context.get(), first + i));
        }
        const int count = ggml_graph_n_nodes(made.nodes);
        ggml_backend_buffer_type_t plain = ggml_backend_dev_buffer_type(device_);
        for (int i = 0; i < count; i++) {
            largest = std::max(largest, ggml_backend_buft_get_alloc_size(plain, ggml_graph_node(made.nodes, i)));
        }
        largest = (largest + alignment - 1) / alignment * alignment;
        made.buffer.reset(ggml_backend_buft_alloc_buffer(plain, largest * n_inputs_));
        if (!made.buffer) {
            fail("no memory for the output of " + op_);
        }
        auto *base = static_cast<char *>(ggml_backend_buffer_get_base(made.buffer.get()));
        for (int i = 0; i < count; i++) {
            ggml_tensor *tensor = ggml_graph_node(made.nodes, i);
            char *address = base + static_cast<size_t>(i) % n_inputs_ * largest;
            if (!perfsuite::place_node(made.buffer.get(), address, tensor)) {
                fail("the output of " + op_ + " cannot be placed");
            }
        }
        return made;
    }

    int64_t time_graph(const graph &timed) {
        const int64_t start_ns = ps_now_ns();
        if (ggml_backend_graph_compute(backend_.get(), timed.nodes) != GGML_STATUS_SUCCESS) {
            fail("ggml cannot compute " + op_);
        }
        return ps_now_ns() - start_ns;
    }

    void fill_floats(ggml_tensor *tensor) {
        const std::vector<float> values = perfsuite::drawn_floats(ggml_nelements(tensor), random_);
        ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(float));
    }

    // Until every expert has been read once, so that none is found in a cache.
    size_t choices() const {
        const int64_t chosen = std::max<int64_t>(1, spec_.n_used * spec_.n_tokens);
        return static_cast<size_t>(std::max<int64_t>(1, spec_.n_experts / chosen));
    }

    void fill_ids(ggml_tensor *ids_tensor, size_t choice) {
        const auto n = static_cast<size_t>(spec_.n_tokens);
        if (is("SET_ROWS")) {
            std::vector<int64_t> places; // more rows than there is room for go around
            for (int64_t at = 0; at < spec_.n_tokens; at++) {
                places.push_back((spec_.n_past + at) % std::max<int64_t>(1, spec_.n_outer));
            }
            ggml_backend_tensor_set(ids_tensor, places.data(), 0, n * sizeof(int64_t));
            return;
        }
        std::vector<int32_t> ids;
        for (size_t token = 0; token < n; token++) {
            if (is("MUL_MAT_ID")) {
                std::vector<int32_t> experts(static_cast<size_t>(spec_.n_experts));
                std::iota(experts.begin(), experts.end(), 0);
                if (ids_.size() > 1) { // in turn, so that no two choices share one
                    std::rotate(experts.begin(), experts.begin() + first_expert(choice, token), experts.end());
                } else {
                    std::shuffle(experts.begin(), experts.end(), random_);
                }
                ids.insert(ids.end(), experts.begin(), experts.begin() + spec_.n_used);
            } else if (is("GET_ROWS")) {
                ids.push_back(static_cast<int32_t>(random_() % static_cast<uint32_t>(spec_.n_outer)));
            } else {
                ids.push_back(static_cast<int32_t>(spec_.n_past) + static_cast<int32_t>(token));
            }
        }
        ggml_backend_tensor_set(ids_tensor, ids.data(), 0, ids.size() * sizeof(int32_t));
    }

    std::ptrdiff_t first_expert(size_t choice, size_t token) const {
        const auto used = static_cast<size_t>(spec_.n_used), n = static_cast<size_t>(spec_.n_tokens);
        return static_cast<std::ptrdiff_t>((choice * n + token) * used % static_cast<size_t>(spec_.n_experts));
    }

    void fill_mask() {
        const int64_t width = mask_->ne[0];
        std::vector<float> row(static_cast<size_t>(width));
        std::vector<char> stored(ggml_row_size(mask_->type, width));
        for (int64_t token = 0; token < mask_->ne[1]; token++) {
            for (int64_t at = 0; at < width; at++) {
                row[static_cast<size_t>(at)] =
                    at <= spec_.n_past + token ? 0.0f : -std::numeric_limits<float>::infinity();
            }
            ggml_quantize_chunk(mask_->type, row.data(), stored.data(), 0, 1, width, nullptr);
            ggml_backend_tensor_set(mask_, stored.data(), static_cast<size_t>(token) * stored.size(), stored.size());
        }
    }

    std::vector<char> draw_weight(const ggml_tensor *tensor) {
        if (ggml_quantize_requires_imatrix(type_)) {
            fail(std::string("weights of type ") + spec_.type + " cannot be drawn: they need an importance matrix");
        }
        const int64_t width = tensor->ne[0], n_rows = ggml_nrows(tensor), n_drawn = std::min(n_rows, drawn_rows);
        const std::vector<float> values = perfsuite::drawn_floats(width * n_drawn, random_);
        std::vector<char> drawn(ggml_nbytes(tensor));
        const size_t chunk = ggml_row_size(type_, width) * static_cast<size_t>(n_drawn);
        ggml_quantize_chunk(type_, values.data(), drawn.data(), 0, n_drawn, width, nullptr);
        for (size_t at = chunk; at < drawn.size(); at += chunk) {
            std::memcpy(drawn.data() + at, drawn.data(), std::min(chunk, drawn.size() - at));
        }
        return drawn;
    }
};

} // namespace

extern "C" int32_t ps_operator_bench(const ps_operator_spec *spec, int32_t n_threads, int64_t budget_ns,
                                     double *samples_ns, int32_t max_samples, int32_t *n_samples, char *error,
                                     size_t error_bytes) {
    return perfsuite::guarded(error, error_bytes, [&] {
        std::vector<double> samples;
        bench(*spec, n_threads).measure(budget_ns, samples, static_cast<size_t>(max_samples));
        *n_samples = std::min(max_samples, static_cast<int32_t>(samples.size()));
        std::copy_n(samples.begin(), *n_samples, samples_ns);
    });
}
