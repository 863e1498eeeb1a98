/* Times one ggml operator alone, as often as a graph of llama.cpp holds it: the unit test behind a forecast. */
#ifndef PERFSUITE_OPERATOR_BENCH_H
#define PERFSUITE_OPERATOR_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
} ps_operator_spec;

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
