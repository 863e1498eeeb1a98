/* Runs one ggml operator again and again, with contents that the caller gives and an output that the caller reads. */
#ifndef PERFSUITE_OPERATOR_RUN_H
#define PERFSUITE_OPERATOR_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "perfsuite/operator_bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A backend of ggml's on its first device. */
typedef struct ps_operator_device ps_operator_device;

/* One operator with its inputs and its output on a device. */
typedef struct ps_operator_run ps_operator_run;

/* What an operator reads: weights or keys; activations or queries; values of an attention. */
typedef enum ps_operator_input {
    PS_OPERATOR_STORED = 0,
    PS_OPERATOR_ACTIVATIONS = 1,
    PS_OPERATOR_VALUES = 2,
} ps_operator_input;

/* Values behind the output, which no operator may touch. */
#define PS_OPERATOR_GUARD_VALUES 64

/* All functions that return an int32_t return 0, or a negative number after writing one line to `error`.
 *
 * A device is used by one thread at a time, and stays open for as long as its operators do.  ggml ends the process
 * where one of its own assertions fails.
 */

/* `backend` is "CPU" or the name of another registry of ggml's, such as "OpenCL"; `backend_path` is the library to take
 * it from, NULL where the engine was built with it.  A library stays for the process.
 */
int32_t ps_operator_device_open(const char *backend, const char *backend_path, int32_t n_threads,
                                ps_operator_device **device, char *error, size_t error_bytes);
const char *ps_operator_device_name(const ps_operator_device *device);
void ps_operator_device_close(ps_operator_device *device);

/* Fails where the device cannot compute an operator, with the reason; nothing is allocated for it.
 *
 * "MUL_MAT" multiplies a parameter of n_outer rows of n_inner, or as many of them as there are n_heads, which are no
 * parameters; by n_tokens activations each.  "FLASH_ATTN_EXT" has n_heads queries of n_inner for each of n_tokens, and
 * sees all n_past + n_tokens positions of n_kv_heads keys and values each, no more and no fewer.
 */
int32_t ps_operator_check(const ps_operator_device *device, const ps_operator_spec *spec, char *error,
                          size_t error_bytes);

/* Parameters lie where llama.cpp would put them, repacked where it repacks; all else in the device's plain memory. */
int32_t ps_operator_open(ps_operator_device *device, const ps_operator_spec *spec, ps_operator_run **run, char *error,
                         size_t error_bytes);

/* Sets the whole of an input, row by row in ggml's order: activations are F32. */
int32_t ps_operator_set(ps_operator_run *run, int32_t input, const void *content, size_t n_bytes, char *error,
                        size_t error_bytes);

/* Fills the output and the guard behind it with NaN. */
int32_t ps_operator_clear(ps_operator_run *run, char *error, size_t error_bytes);

/* Computes a graph of `n_copies` identical operators, and gives what it took, ns, the graph's start included. */
int32_t ps_operator_compute(ps_operator_run *run, int32_t n_copies, int64_t *elapsed_ns, char *error,
                            size_t error_bytes);

/* Reads the output and the guard: exactly ps_operator_output_values() of them. */
size_t ps_operator_output_values(const ps_operator_run *run);
int32_t ps_operator_read(const ps_operator_run *run, float *values, size_t n_values, char *error, size_t error_bytes);

void ps_operator_close(ps_operator_run *run);

#ifdef __cplusplus
}
#endif

#endif
