// libmtmd, llama.cpp's library for images, which lies beside libllama and is loaded where a run asks for it.
//
// Few installations have its header, so what is needed of it is declared here.  Its parameters are handed over by value,
// and releases put members between and behind those of older ones: where they lie is found in what the library itself
// writes, and a form that is not known is refused.

#ifndef PERFSUITE_ENGINE_MTMD_LIBRARY_H
#define PERFSUITE_ENGINE_MTMD_LIBRARY_H

#include <cstddef>
#include <cstdint>

#include "ggml-backend.h"
#include "llama.h"

namespace perfsuite {

struct mtmd_context;
struct mtmd_bitmap;
struct mtmd_input_chunks;
struct mtmd_input_chunk;

// As long as those of any release and longer: the library writes, and reads, the first bytes of it.
struct mtmd_params {
    alignas(8) unsigned char bytes[512];
};

// A text of `MARKER_TEXT_BYTES` is the same in both forms: an older one has, in the place of the length, two flags, the
// bytes 1 and 1.
struct mtmd_text {
    const char *text;
    uint64_t n_bytes;
    uint64_t flags;
};

constexpr size_t MARKER_TEXT_BYTES = 257;

// A part of a prompt: an image, or a text.
struct mtmd_part {
    const mtmd_text *text;
    const mtmd_bitmap *bitmap;
};

enum { MTMD_CHUNK_IMAGE = 1 };

struct mtmd_functions {
    const char *(*default_marker)();
    mtmd_params (*context_params_default)();
    mtmd_context *(*init_from_file)(const char *path, const llama_model *model, mtmd_params params);
    void (*free)(mtmd_context *context);
    bool (*support_vision)(const mtmd_context *context);
    mtmd_bitmap *(*bitmap_init)(uint32_t nx, uint32_t ny, const unsigned char *data);
    void (*bitmap_free)(mtmd_bitmap *bitmap);
    mtmd_input_chunks *(*input_chunks_init)();
    void (*input_chunks_free)(mtmd_input_chunks *chunks);
    size_t (*input_chunks_size)(const mtmd_input_chunks *chunks);
    const mtmd_input_chunk *(*input_chunks_get)(const mtmd_input_chunks *chunks, size_t at);
    int (*input_chunk_get_type)(const mtmd_input_chunk *chunk);
    size_t (*input_chunk_get_n_tokens)(const mtmd_input_chunk *chunk);
    int32_t (*tokenize)(mtmd_context *context, mtmd_input_chunks *chunks, const mtmd_text *text,
                        const mtmd_bitmap **bitmaps, size_t n_bitmaps);
    int32_t (*encode_chunk)(mtmd_context *context, const mtmd_input_chunk *chunk);
    // NULL in older releases.
    int32_t (*tokenize_from_parts)(const mtmd_context *context, mtmd_input_chunks *chunks, const mtmd_part *const *parts,
                                   size_t n_parts, bool add_special);
    void (*log_set)(ggml_log_callback callback, void *data);
};

// What is asked of the library beside its own defaults.
struct mtmd_settings {
    bool use_gpu;
    bool flash_attn;
    int n_threads;
    ggml_backend_sched_eval_callback ask; // NULL: nobody is told of the graph
    void *asker;
};

// Raises `failure` where there is no such library beside libllama, or it lacks a function.
const mtmd_functions &mtmd_library();

// Raises `failure` where the form of the parameters is not known.
mtmd_params mtmd_params_of(const mtmd_functions &library, const mtmd_settings &settings);

} // namespace perfsuite

#endif
