/* Times one ggml operator alone, as often as a graph of llama.cpp holds it: the unit test behind a forecast. */
#ifndef PERFSUITE_OPERATOR_BENCH_H
#define PERFSUITE_OPERATOR_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that an operator writes or reads. */
typedef struct ps_operator_tensor {
    const char *type;
    int64_t ne[4];
} ps_operator_tensor;

/* One operator. What an operator has no use for is 0. */
typedef struct ps_operator_spec {
    const char *op;       /* as a graph names it: "MUL_MAT", "RMS_NORM+MUL", "SWIGLU" */
    const char *type;     /* ggml type of the parameters or of the KV cache */
    int64_t n_inner;      /* elements of a row: of the weights, of a norm, of a head */
    int64_t n_outer;      /* rows of the weights */
    int64_t n_tokens;
    int64_t n_heads;
    int64_t n_kv_heads;
    int64_t n_past;       /* positions that the KV cache held before */
    int64_t n_experts;
    int64_t n_used;       /* experts that each token is routed to */
    int64_t spread_bytes; /* parameters that are read before one of them is read again */
    const ps_operator_tensor *tensors; /* what it writes, and then what it reads */
    int32_t n_tensors;
    const int32_t *params; /* ggml's op_params, floats by their bits; the kind of a unary or gated one is not needed */
    int32_t n_params;
} ps_operator_spec;

/* An operator that is not built in a way of its own (products, attention, a fused norm, and what reads positions or rows
 * by their numbers) is built of its tensors and parameters as they are: they have to be those of ggml's own function.
 */

/* Computes graphs of nothing but this operator until `budget_ns` has passed, at least two of them.
 *
 * Each sample is the time of one graph over its operators, ns: with the dispatch of each, and without what starts a
 * graph.  Weights lie where llama.cpp would put them, repacked where it repacks.  Returns 0, or a negative number after
 * writing one line to `error`.
 */
int32_t ps_operator_bench(const ps_operator_spec *spec, int32_t n_threads, int64_t budget_ns, double *samples_ns,
                          int32_t max_samples, int32_t *n_samples, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
