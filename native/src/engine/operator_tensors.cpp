// Any operator of ggml's; see operator_tensors.h.

#include "operator_tensors.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "ggml-backend.h"
#include "operator_graph.h"

namespace perfsuite {

namespace {

struct operator_kind {
    ggml_op op;
    int32_t kind; // of a unary or gated operator, its first parameter; -1 where it is neither
};

// By the name that a graph has for it, what stands behind a slash aside.
operator_kind kind_called(const std::string &op) {
    const std::string name = op.substr(0, op.find('/'));
    for (int i = 0; i < GGML_OP_COUNT; i++) {
        if (name == ggml_op_name(static_cast<ggml_op>(i))) {
            return {static_cast<ggml_op>(i), -1};
        }
    }
    for (int i = 0; i < GGML_UNARY_OP_COUNT; i++) {
        if (name == ggml_unary_op_name(static_cast<ggml_unary_op>(i))) {
            return {GGML_OP_UNARY, i};
        }
    }
#ifndef PS_LACKS_GGML_GLU_OP_COUNT
    for (int i = 0; i < GGML_GLU_OP_COUNT; i++) {
        if (name == ggml_glu_op_name(static_cast<ggml_glu_op>(i))) {
            return {GGML_OP_GLU, i};
        }
    }
#endif
    throw failure{"the operator " + op + " cannot be measured alone"};
}

ggml_tensor *tensor_of(ggml_context *context, const ps_operator_tensor &wanted) {
    return ggml_new_tensor(context, known_type(wanted.type), GGML_MAX_DIMS, wanted.ne);
}

template <typename number> void set_numbers(ggml_tensor *tensor, int64_t bound) {
    std::vector<number> values(static_cast<size_t>(ggml_nelements(tensor)));
    for (size_t at = 0; at < values.size(); at++) {
        values[at] = static_cast<number>(at % static_cast<size_t>(bound));
    }
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(number));
}

} // namespace

std::vector<ggml_tensor *> source_tensors(ggml_context *context, const ps_operator_spec &spec) {
    std::vector<ggml_tensor *> sources;
    for (int32_t i = 1; i < spec.n_tensors; i++) {
        sources.push_back(tensor_of(context, spec.tensors[i]));
    }
    return sources;
}

ggml_tensor *operator_of(ggml_context *context, const ps_operator_spec &spec,
                         const std::vector<ggml_tensor *> &sources) {
    const operator_kind known = kind_called(spec.op);
    const auto n_params = static_cast<size_t>(spec.n_params);
    if (spec.n_tensors < 1 || sources.size() > GGML_MAX_SRC || n_params > GGML_MAX_OP_PARAMS / sizeof(int32_t)) {
        throw failure{"the operator " + std::string(spec.op) + " has no tensors, or too many"};
    }
    ggml_tensor *node = tensor_of(context, spec.tensors[0]);
    node->op = known.op;
    std::copy_n(spec.params, n_params, node->op_params);
    if (known.kind >= 0) {
        node->op_params[0] = known.kind;
    }
    std::copy(sources.begin(), sources.end(), node->src);
    return node;
}

size_t operator_bytes(const ps_operator_spec &spec) {
    size_t bytes = 0;
    for (int32_t i = 0; i < spec.n_tensors; i++) {
        const int64_t *ne = spec.tensors[i].ne;
        bytes += ggml_row_size(known_type(spec.tensors[i].type), ne[0]) * static_cast<size_t>(ne[1] * ne[2] * ne[3]);
    }
    return bytes;
}

std::vector<float> drawn_floats(int64_t n_values, std::mt19937 &random) {
    std::vector<float> values(static_cast<size_t>(n_values));
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    for (float &value : values) {
        value = uniform(random);
    }
    return values;
}

void draw_tensor(ggml_tensor *tensor, const ps_operator_spec &spec, std::mt19937 &random) {
    const int64_t bound = std::max<int64_t>(1, spec.n_experts);
    if (tensor->type == GGML_TYPE_I32) {
        return set_numbers<int32_t>(tensor, bound);
    }
    if (tensor->type == GGML_TYPE_I64) {
        return set_numbers<int64_t>(tensor, bound);
    }
    const std::vector<float> values = drawn_floats(ggml_nelements(tensor), random);
    std::vector<char> stored(ggml_nbytes(tensor));
    ggml_quantize_chunk(tensor->type, values.data(), stored.data(), 0, ggml_nrows(tensor), tensor->ne[0], nullptr);
    ggml_backend_tensor_set(tensor, stored.data(), 0, stored.size());
}

} // namespace perfsuite
