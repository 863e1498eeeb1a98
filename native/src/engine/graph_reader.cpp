// The graphs that the engine would compute for a model, read from the model's metadata alone.

#include <cstdint>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "ggml.h"
#include "image_encoder.h"
#include "llama.h"
#include "loading.h"
#include "perfsuite/driver.h"
#include "release.h"

namespace {

using perfsuite::context_ptr;
using perfsuite::fail;

// Exported by libllama since some release, and in no header that is installed.
constexpr const char *reserve_symbol = "_Z19llama_graph_reserveP13llama_contextjjj";
using reserve_function = ggml_cgraph *(*)(llama_context *, uint32_t n_tokens, uint32_t n_seqs, uint32_t n_outputs);

reserve_function reserve_or_fail() {
    const auto reserve = reinterpret_cast<reserve_function>(dlsym(RTLD_DEFAULT, reserve_symbol));
    if (!reserve) {
        fail("this release of llama.cpp cannot say a graph before it computes it: it has no llama_graph_reserve");
    }
    return reserve;
}

// A reserved graph sees the whole cache, so each length of it takes a context of its own.
void add_graph(llama_model *model, ps_options options, const ps_graph_request &request, ps_recorder *recorder) {
    options.n_ctx = request.n_kv;
    const context_ptr context = perfsuite::open_context(model, options, nullptr);
    // A model without memory is an encoder, which gives all of its tokens.
    const int32_t n_outputs = perfsuite::has_memory(context.get()) ? request.n_outputs : request.n_tokens;
    ggml_cgraph *graph = reserve_or_fail()(context.get(), static_cast<uint32_t>(request.n_tokens), 1,
                                           static_cast<uint32_t>(n_outputs));
    if (!graph) {
        fail("llama.cpp makes no graph of " + std::to_string(request.n_tokens) + " tokens");
    }
    std::vector<ggml_tensor *> nodes;
    for (int at = 0; at < ggml_graph_n_nodes(graph); at++) {
        nodes.push_back(ggml_graph_node(graph, at));
    }
    if (!ps_recorder_add_graph(recorder, nodes.data(), static_cast<int32_t>(nodes.size()))) {
        fail("a graph of " + std::to_string(nodes.size()) + " nodes is more than can be kept");
    }
}

// libmtmd says a graph to whoever is asked while it computes, which ends at the first node.
void add_image_graph(perfsuite::image_encoder &images, ps_recorder *recorder) {
    if (images.n_slices() != 1) {
        fail("the projector cuts its image into " + std::to_string(images.n_slices()) + " slices");
    }
    ps_recorder_only_ask(recorder);
    ps_recorder_follow_backends(recorder, true);
    try {
        images.encode();
    } catch (const perfsuite::failure &) {
    }
    if (ps_recorder_n_graphs(recorder) != 1) {
        fail("this release of llama.cpp says no graph of an image before it computes it");
    }
}

// Calls what reads graphs behind what loads; which of the two failed is the answer.
template <typename Load, typename Read>
int32_t read(Load load, Read read_loaded, char *error, size_t error_bytes) {
    bool is_loaded = false;
    const int32_t status = perfsuite::guarded(error, error_bytes, [&] {
        const auto loaded = load();
        is_loaded = true;
        read_loaded(loaded);
    });
    return status == 0 ? 0 : is_loaded ? PS_NO_GRAPH : PS_NO_MODEL;
}

} // namespace

extern "C" {

int32_t ps_engine_graphs(const ps_options *options, const ps_graph_request *requests, int32_t n_requests,
                         ps_recorder *recorder, char *error, size_t error_bytes) {
    const auto add_graphs = [&](const perfsuite::model_ptr &model) {
        for (int32_t at = 0; at < n_requests; at++) {
            add_graph(model.get(), *options, requests[at], recorder);
        }
    };
    return read([&] { return perfsuite::load(*options, false); }, add_graphs, error, error_bytes);
}

int32_t ps_engine_image_graph(const ps_options *options, ps_recorder *recorder, char *error, size_t error_bytes) {
    perfsuite::model_ptr model;
    const auto load_projector = [&] {
        model = perfsuite::load(*options, false);
        return std::make_unique<perfsuite::image_encoder>(*options, model.get(), recorder);
    };
    const auto add = [&](const std::unique_ptr<perfsuite::image_encoder> &images) { add_image_graph(*images, recorder); };
    return read(load_projector, add, error, error_bytes);
}

} // extern "C"
