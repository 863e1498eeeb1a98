// What graphs of single operators are made of: ggml's objects as owners, and where and how llama.cpp places tensors.

#ifndef PERFSUITE_ENGINE_OPERATOR_GRAPH_H
#define PERFSUITE_ENGINE_OPERATOR_GRAPH_H

#include <cmath>
#include <memory>
#include <string>

#include "failure.h"
#include "ggml-backend.h"
#include "ggml.h"

namespace perfsuite {

struct backend_deleter {
    void operator()(ggml_backend *backend) const { ggml_backend_free(backend); }
};
struct buffer_deleter {
    void operator()(ggml_backend_buffer *buffer) const { ggml_backend_buffer_free(buffer); }
};
struct context_deleter {
    void operator()(ggml_context *context) const { ggml_free(context); }
};

using backend_ptr = std::unique_ptr<ggml_backend, backend_deleter>;
using buffer_ptr = std::unique_ptr<ggml_backend_buffer, buffer_deleter>;
using context_ptr = std::unique_ptr<ggml_context, context_deleter>;

inline ggml_type known_type(const char *name) {
    const ggml_type type = type_called(name);
    if (type == GGML_TYPE_COUNT) {
        throw failure{std::string("no ggml type is called '") + name + "'"};
    }
    return type;
}

// A context without memory of its own for what its tensors hold.
inline context_ptr make_context(size_t n_tensors, size_t n_graph_nodes) {
    ggml_init_params params{};
    params.mem_size = ggml_tensor_overhead() * n_tensors;
    if (n_graph_nodes > 0) {
        params.mem_size += ggml_graph_overhead_custom(n_graph_nodes, false);
    }
    params.no_alloc = true;
    context_ptr context(ggml_init(params));
    if (!context) {
        throw failure{"no memory for a ggml context"};
    }
    return context;
}

// Where llama.cpp puts a parameter that `node` reads: the first of the device's own layouts that it can be computed
// from, else plain memory.
inline ggml_backend_buffer_type_t parameter_place(ggml_backend_dev_t device, ggml_tensor *parameter,
                                                  const ggml_tensor *node) {
    ggml_backend_reg_t registry = ggml_backend_dev_backend_reg(device);
    auto extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(registry, "ggml_backend_dev_get_extra_bufts"));
    for (ggml_backend_buffer_type_t *types = extra ? extra(device) : nullptr; types && *types; types++) {
        buffer_ptr nothing(ggml_backend_buft_alloc_buffer(*types, 0));
        parameter->buffer = nothing.get();
        const bool supported = ggml_backend_dev_supports_op(device, node);
        parameter->buffer = nullptr;
        if (supported) {
            return *types;
        }
    }
    return ggml_backend_dev_buffer_type(device);
}

// Puts a node of a graph at an address of a buffer; a view lies where its source lies.
inline bool place_node(ggml_backend_buffer_t buffer, void *address, ggml_tensor *node) {
    const ggml_status status =
        node->view_src ? ggml_backend_view_init(node) : ggml_backend_tensor_alloc(buffer, node, address);
    return status == GGML_STATUS_SUCCESS;
}

// The rows of the mask of so many queries; older releases want whole blocks of them.
inline int64_t mask_rows(int64_t n_queries) {
#ifdef GGML_KQ_MASK_PAD
    return GGML_PAD(n_queries, GGML_KQ_MASK_PAD);
#else
    return n_queries;
#endif
}

// Attention over a cache: queries [head, heads, tokens], keys and values [head, KV heads, positions].
inline ggml_tensor *attention_node(ggml_context *context, ggml_tensor *queries, ggml_tensor *keys, ggml_tensor *values,
                                   ggml_tensor *mask) {
    ggml_tensor *q = ggml_permute(context, queries, 0, 2, 1, 3);
    ggml_tensor *k = ggml_permute(context, keys, 0, 2, 1, 3);
    ggml_tensor *v = ggml_permute(context, values, 0, 2, 1, 3);
    const float scale = 1.0f / std::sqrt(static_cast<float>(queries->ne[0]));
    ggml_tensor *attention = ggml_flash_attn_ext(context, q, k, v, mask, scale, 0.0f, 0.0f);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // what takes its place is not in older releases
    ggml_flash_attn_ext_set_prec(attention, GGML_PREC_F32);
#pragma GCC diagnostic pop
    return attention;
}

} // namespace perfsuite

#endif
