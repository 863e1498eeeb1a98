#include "fake_ggml.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

struct ggml_compute_params {
    int ith, nth;
};

EXPORT bool ggml_cpu_extra_compute_forward(struct ggml_compute_params *params, void *tensor);
EXPORT void ggml_compute_forward_rms_norm_mul_fused(const struct ggml_compute_params *params, void *norm, void *mul);
EXPORT void ggml_barrier(void *pool);
EXPORT int ggml_backend_graph_compute_async(void *backend, void *graph);
EXPORT fake_calls fake_ggml_calls(void);
EXPORT int fake_ggml_compute(int thread, void *graph, void *tensor, void *norm, void *mul);

static fake_calls calls;

bool ggml_cpu_extra_compute_forward(struct ggml_compute_params *params, void *tensor) {
    calls.n_forward += params && tensor;
    return false;
}

void ggml_compute_forward_rms_norm_mul_fused(const struct ggml_compute_params *params, void *norm, void *mul) {
    calls.n_fused += params && norm && mul;
}

void ggml_barrier(void *pool) { calls.n_barriers += pool == (void *)0; }

int ggml_backend_graph_compute_async(void *backend, void *graph) {
    calls.n_graphs += backend && graph;
    return 17;
}

fake_calls fake_ggml_calls(void) { return calls; }

int fake_ggml_compute(int thread, void *graph, void *tensor, void *norm, void *mul) {
    struct ggml_compute_params params = {thread, thread + 1};
    int status = ggml_backend_graph_compute_async(&params, graph);
    ggml_cpu_extra_compute_forward(&params, tensor);
    ggml_barrier((void *)0);
    ggml_compute_forward_rms_norm_mul_fused(&params, norm, mul);
    ggml_barrier((void *)0);
    return status;
}
