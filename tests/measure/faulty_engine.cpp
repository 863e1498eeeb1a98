/* An engine that misbehaves as FAULT says: these definitions come before llama.cpp's own, by LD_PRELOAD.
 *
 * Where FAULT_FROM is a number, calls of llama_decode before that one are llama.cpp's own.
 */
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <set>
#include <unistd.h>
#include <vector>

#include "llama.h"

namespace {

int n_decoded;

const char *variable(const char *name) {
    const char *text = std::getenv(name);
    return text ? text : "";
}

bool is_fault(const char *name) { return std::strcmp(variable("FAULT"), name) == 0; }

bool is_due() { return n_decoded >= std::atoi(variable("FAULT_FROM")); }

template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/* So much to a descriptor, without the end of a line. */
void write_much(int descriptor, size_t n_bytes) {
    static char chunk[1 << 20];
    std::memset(chunk, 'x', sizeof chunk);
    for (size_t at = 0; at < n_bytes; at += sizeof chunk) {
        if (write(descriptor, chunk, sizeof chunk) < 0) {
            return;
        }
    }
}

void misbehave() {
    if (is_fault("abort")) {
        std::fprintf(stderr, "GGML_ASSERT(false) failed\n");
        std::abort();
    }
    if (is_fault("segv")) {
        raise(SIGSEGV);
    }
    if (is_fault("exit")) {
        std::exit(3);
    }
    if (is_fault("hang")) {
        for (;;) {
            pause();
        }
    }
    if (is_fault("stdout")) {
        std::printf("garbage \x01\xff without an end");
        std::fflush(stdout);
    }
    if (is_fault("closed")) {
        close(STDOUT_FILENO);
    }
    if (is_fault("stderr")) {
        write_much(STDERR_FILENO, static_cast<size_t>(std::atoi(variable("FAULT_MIB"))) << 20);
        std::fprintf(stderr, "\nlast words\n");
        std::abort();
    }
    if (is_fault("memory")) {
        for (;;) {
            std::memset(new char[1 << 24], 1, 1 << 24);
        }
    }
}

/* Leaves out the first so many tokens of a prompt, or takes another token for that of a decode step. */
void cheat(llama_batch &batch) {
    static llama_token other = 0;
    const int32_t n_left_out = is_fault("half") ? batch.n_tokens / 2 : is_fault("stale") ? batch.n_tokens - 1 : 0;
    batch.token += n_left_out;
    batch.n_tokens -= n_left_out;
    if (is_fault("token") && batch.n_tokens == 1) {
        batch.token = &other;
    }
}

} // namespace

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT int32_t llama_decode(llama_context *context, llama_batch batch) {
    static const auto own = next<int32_t (*)(llama_context *, llama_batch)>("llama_decode");
    const bool is_wrong = is_due();
    n_decoded++;
    static std::set<std::vector<llama_token>> prompts;
    if (is_fault("repeat") && batch.n_tokens > 1 &&
        !prompts.emplace(batch.token, batch.token + batch.n_tokens).second) {
        return -3; /* a prompt that came before, which an engine may know */
    }
    if (is_wrong) {
        misbehave();
        cheat(batch);
    }
    return is_wrong && is_fault("idle") ? 0 : is_wrong && is_fault("status") ? -3 : own(context, batch);
}

EXPORT float *llama_get_logits_ith(llama_context *context, int32_t i) {
    static const auto own = next<float *(*)(llama_context *, int32_t)>("llama_get_logits_ith");
    float *logits = own(context, i);
    if (logits && is_fault("nan") && is_due()) {
        logits[0] = NAN;
    }
    return logits;
}

/* A graph that is planned and not computed. */
EXPORT enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched, ggml_cgraph *graph) {
    static const auto own =
        next<enum ggml_status (*)(ggml_backend_sched_t, ggml_cgraph *)>("ggml_backend_sched_graph_compute_async");
    return is_fault("short") && is_due() ? GGML_STATUS_SUCCESS : own(sched, graph);
}

/* Graphs that lack a part of the model. */
EXPORT ggml_tensor *ggml_rms_norm(ggml_context *context, ggml_tensor *a, float eps) {
    static const auto own = next<decltype(&ggml_rms_norm)>("ggml_rms_norm");
    return is_fault("norm") ? a : own(context, a, eps);
}

EXPORT ggml_tensor *ggml_rope_ext(ggml_context *context, ggml_tensor *a, ggml_tensor *b, ggml_tensor *c, int n_dims,
                                  int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,
                                  float attn_factor, float beta_fast, float beta_slow) {
    static const auto own = next<decltype(&ggml_rope_ext)>("ggml_rope_ext");
    return own(context, a, b, c, n_dims, mode, n_ctx_orig, freq_base, is_fault("rope") ? 0.0f : freq_scale, ext_factor,
               attn_factor, beta_fast, beta_slow);
}

EXPORT ggml_tensor *ggml_swiglu_split(ggml_context *context, ggml_tensor *a, ggml_tensor *b) {
    static const auto own = next<decltype(&ggml_swiglu_split)>("ggml_swiglu_split");
    return is_fault("activation") ? b : own(context, a, b);
}

EXPORT ggml_tensor *ggml_flash_attn_ext(ggml_context *context, ggml_tensor *q, ggml_tensor *k, ggml_tensor *v,
                                        ggml_tensor *mask, float scale, float max_bias, float softcap) {
    static const auto own = next<decltype(&ggml_flash_attn_ext)>("ggml_flash_attn_ext");
    return own(context, q, k, v, mask, is_fault("scale") ? scale / 2 : scale, max_bias, softcap);
}

EXPORT ggml_tensor *ggml_mul_mat(ggml_context *context, ggml_tensor *a, ggml_tensor *b) {
    static const auto own = next<decltype(&ggml_mul_mat)>("ggml_mul_mat");
    static const auto view = next<decltype(&ggml_view_2d)>("ggml_view_2d");
    const bool is_of_graph = b->op != GGML_OP_NONE; /* else somebody asks whether it is supported */
    if (is_of_graph && is_fault("columns") && std::strstr(a->name, "ffn_down")) {
        const int64_t n_columns = a->ne[0] * 2 / 3 / 256 * 256;
        return own(context, view(context, a, n_columns, a->ne[1], a->nb[1], 0),
                   view(context, b, n_columns, b->ne[1], b->nb[1], 0));
    }
    if (is_of_graph && is_fault("rows") && std::strstr(a->name, "ffn_gate")) {
        static const auto pad = next<decltype(&ggml_pad)>("ggml_pad");
        const int64_t n_half = a->ne[1] / 2;
        return pad(context, own(context, view(context, a, a->ne[0], n_half, a->nb[1], 0), b),
                   static_cast<int>(a->ne[1] - n_half), 0, 0, 0);
    }
    const bool is_skipped = is_of_graph && is_fault("projection") && std::strstr(a->name, "attn_output");
    return is_skipped && a->ne[0] == a->ne[1] ? b : own(context, a, b);
}

} // extern "C"
