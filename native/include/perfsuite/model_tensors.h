/* The tensors that llama.cpp wants of a model, from nothing but the metadata of its GGUF. */
#ifndef PERFSUITE_MODEL_TENSORS_H
#define PERFSUITE_MODEL_TENSORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ps_model_tensors ps_model_tensors;

typedef struct ps_model_tensor {
    const char *name;
    int64_t ne[4]; /* 1 beyond the last dimension */
    int32_t is_left_out; /* the model loads and its graph builds without it, and nobody wants it */
} ps_model_tensor;

/* Asks the engine about the header at `path`, a GGUF without tensors.  A kind is a tensor's name with a `*` for each
 * number of a layer; `wanted` kinds stay although they are optional, `unwanted` ones, or single tensors, go although the
 * graph may lack something then.  Both end with a NULL.  Returns 0, or a negative number after writing one line to `error`. */
int32_t ps_model_tensors_open(const char *path, const char *const *wanted, const char *const *unwanted,
                              ps_model_tensors **model, char *error, size_t error_bytes);
const ps_model_tensor *ps_model_tensors_rows(const ps_model_tensors *model, uint64_t *n_rows);
/* Whether the engine builds a graph of what is not left out; one of a model that needs another beside it, it does not. */
int32_t ps_model_tensors_is_built(const ps_model_tensors *model);
void ps_model_tensors_close(ps_model_tensors *model);

#ifdef __cplusplus
}
#endif

#endif
