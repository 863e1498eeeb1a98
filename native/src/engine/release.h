/* What releases of llama.cpp differ in.
 *
 * PS_LACKS_<name> is defined where the headers at hand have no such name (`lacking_names`, perfsuite/measure/native.py);
 * with none of them this is the newest release that is known. */
#ifndef PERFSUITE_ENGINE_RELEASE_H
#define PERFSUITE_ENGINE_RELEASE_H

#include <stdbool.h>

#include "ggml-backend.h"
#include "ggml.h"

/* Whether a node of a graph is computed: all are, where nothing says so. */
static inline bool ps_is_computed(const struct ggml_tensor *tensor) {
#ifdef PS_LACKS_GGML_TENSOR_FLAG_COMPUTE
    return tensor != NULL;
#else
    return (tensor->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
#endif
}

static inline const char *ps_ggml_version(void) {
#ifdef PS_LACKS_GGML_VERSION
    return "unknown";
#else
    return ggml_version();
#endif
}

static inline bool ps_is_gpu(enum ggml_backend_dev_type type) {
#ifdef PS_LACKS_GGML_BACKEND_DEVICE_TYPE_IGPU
    return type == GGML_BACKEND_DEVICE_TYPE_GPU;
#else
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
#endif
}

#ifdef __cplusplus

#include <string>

#include "llama.h"

namespace perfsuite {

inline void set_flash_attention(llama_context_params &params, bool is_on) {
#ifdef PS_LACKS_FLASH_ATTN_TYPE
    params.flash_attn = is_on;
#else
    params.flash_attn_type = is_on ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
#endif
}

/* Whether a sliding window keeps all of its context; before there was a choice, it did. */
inline void keep_whole_window(llama_context_params &params, bool is_wanted) {
#ifdef PS_LACKS_SWA_FULL
    (void)params;
    (void)is_wanted;
#else
    params.swa_full = is_wanted;
#endif
}

/* Asks for a model without its weights, in the two ways that there have been; false where a release has neither. */
template <typename Params>
auto leave_weights(Params &params, int) -> decltype(params.no_alloc, params.load_mode, true) {
    params.load_mode = static_cast<decltype(params.load_mode)>(0); /* mapped, it would be read all the same */
    return params.no_alloc = true;
}

template <typename Params>
auto leave_weights(Params &params, long) -> decltype(params.no_alloc, params.use_mmap, true) {
    params.use_mmap = false;
    return params.no_alloc = true;
}

inline bool leave_weights(llama_model_params &, ...) { return false; }

inline void clear_memory(llama_context *context) {
#ifdef PS_LACKS_LLAMA_MEMORY_CLEAR
    llama_kv_self_clear(context);
#else
    llama_memory_clear(llama_get_memory(context), false);
#endif
}

/* Whether a context keeps what it has seen; older releases made none without. */
inline bool has_memory(llama_context *context) {
#ifdef PS_LACKS_LLAMA_GET_MEMORY
    return context != nullptr;
#else
    return llama_get_memory(context) != nullptr;
#endif
}

/* Forgets what the first sequence has from a position on; whether the engine can. */
inline bool forget_from(llama_context *context, llama_pos position) {
#ifdef PS_LACKS_LLAMA_MEMORY_SEQ_RM
    return llama_kv_self_seq_rm(context, 0, position, -1);
#else
    return llama_memory_seq_rm(llama_get_memory(context), 0, position, -1);
#endif
}

/* At scale 1; whether the engine takes it. */
inline bool apply_adapter(llama_context *context, llama_adapter_lora *adapter) {
#ifdef PS_LACKS_LLAMA_SET_ADAPTERS_LORA
    return llama_set_adapter_lora(context, adapter, 1.0f) == 0;
#else
    float scale = 1.0f;
    return llama_set_adapters_lora(context, &adapter, 1, &scale) == 0;
#endif
}

/* As far as the release says it. */
inline std::string engine_version() {
    std::string text;
#ifndef PS_LACKS_LLAMA_VERSION
    text += std::string("llama ") + llama_version() + ", ";
#endif
#ifndef PS_LACKS_GGML_VERSION
    text += std::string("ggml ") + ggml_version() + " " + ggml_commit();
#endif
    return text.empty() ? "a llama.cpp that does not say its version" : text;
}

} // namespace perfsuite

#endif

#endif
