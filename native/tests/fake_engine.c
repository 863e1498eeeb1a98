/* Stands in for llama.cpp and the engine library behind the phase tracer: each function waits, and calls what the real
 * one calls. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "llama.h"

#define EXPORT __attribute__((visibility("default")))

struct ggml_compute_params {
    int ith, nth;
};

EXPORT void ggml_compute_forward_get_rows(const struct ggml_compute_params *params, struct ggml_tensor *tensor);

static void pause_ns(long ns) {
    const struct timespec span = {.tv_sec = 0, .tv_nsec = ns};
    nanosleep(&span, NULL);
}

EXPORT void ggml_compute_forward_get_rows(const struct ggml_compute_params *params, struct ggml_tensor *tensor) {
}

EXPORT enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t scheduler,
                                                               struct ggml_cgraph *graph) {
    const struct ggml_compute_params first = {0, 2}, second = {1, 2};
    ggml_compute_forward_get_rows(&second, NULL);
    ggml_compute_forward_get_rows(&first, NULL);
    pause_ns(1000000);
    return GGML_STATUS_SUCCESS;
}

EXPORT int32_t llama_decode(struct llama_context *context, struct llama_batch batch) {
    return batch.n_tokens + (int32_t)ggml_backend_sched_graph_compute_async(NULL, NULL);
}

EXPORT void llama_synchronize(struct llama_context *context) { (void)context; }

EXPORT float *llama_get_logits_ith(struct llama_context *context, int32_t i) {
    static float logits[4];
    return logits + i;
}

EXPORT llama_token llama_sampler_sample(struct llama_sampler *sampler, struct llama_context *context, int32_t i) {
    return 7 + (llama_get_logits_ith(context, i) == NULL);
}

EXPORT void ps_phase_copy(float *to, const float *from, size_t n);
EXPORT void ps_phase_copy(float *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
    }
}

EXPORT float ps_phase_softmax(float *values, size_t n);
EXPORT float ps_phase_softmax(float *values, size_t n) { return values[n - 1]; }
