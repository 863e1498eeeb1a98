/* The phase driver: runs a prompt and a generation through llama.cpp's C API and times each phase of it.
 *
 * Every function returns 0, or a negative number after writing one line to `error`.
 */
#ifndef PERFSUITE_DRIVER_H
#define PERFSUITE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "perfsuite/clock.h"
#include "perfsuite/recorder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ps_options {
    const char *gguf_path;
    const char *type_k; /* ggml type name of the K cache, such as "f16" */
    const char *type_v;
    const char *inject_op; /* NULL: no slowdown */
    const char *lora_path; /* an adapter in GGUF, applied at scale 1; NULL: none */
    const char *draft_path; /* the model of a draft in GGUF; NULL: none, or the text itself where there are drafts */
    const char *mmproj_path; /* the projector of a vision model in GGUF, which encodes an image before each prompt; NULL: none */
    const char *backend_path; /* a backend of ggml's in a library of its own, loaded before the model; NULL: none */
    const uint8_t *group_ends[2]; /* of the `groups` recorder, in a prompt and in a decode step; NULL: every node */
    int32_t n_group_nodes[2];
    double inject_ratio;
    int64_t inject_extra_ns;
    double inject_phase_ratio; /* each of `inject_phases` is followed by a busy wait of this share of its own time */
    double acceptance_ratio; /* chance that a proposed token passes */
    int32_t n_threads;
    int32_t n_ctx; /* of all sequences */
    int32_t n_sequences; /* that are generated side by side, a token of each in one evaluation */
    int32_t n_draft; /* tokens that are proposed in a round; 0: no speculative decoding */
    int32_t n_batch;
    int32_t n_ubatch;
    int32_t flash_attn; /* 0 or 1 */
    int32_t n_gpu_layers;
    int32_t recorder; /* ps_recorder_kind */
    uint32_t seed;    /* of the token ids: each repetition has a text of its own, and each warm-up */
    uint32_t layout_seed; /* of the blocks that are put on the heap before anything of the engine's; 0 for none */
    uint32_t inject_phases; /* bits 1 << ps_phase, of what evaluates a graph; for certificates and tests only */
    int32_t image_size; /* pixels of a side of that image */
    int32_t embeds; /* 0 or 1: the context gives embeddings, and no logits: a prompt is one pass, and nothing follows */
    int32_t swa_full; /* 0 or 1: layers with a sliding window keep all positions, llama.cpp's default */
} ps_options;

typedef struct ps_workload {
    int32_t n_prompt;
    int32_t n_gen;
    int32_t n_depth; /* tokens in the KV cache before the prompt, not timed */
    int32_t n_repetitions;
} ps_workload;

typedef enum ps_phase {
    PS_PHASE_LOAD = 0,
    PS_PHASE_PREFILL = 1,
    PS_PHASE_DECODE = 2,
    PS_PHASE_COPY = 3,
    PS_PHASE_SOFTMAX = 4,
    PS_PHASE_SAMPLING = 5,
    PS_PHASE_END_TO_END = 6,
    PS_PHASE_DRAFT_PREFILL = 7, /* the draft reads the prompt */
    PS_PHASE_DRAFT = 8,         /* the draft proposes the tokens of a round */
    PS_PHASE_EMBED = 9,         /* a model that gives embeddings reads the prompt */
    PS_PHASE_ENCODE_IMAGE = 10,
} ps_phase;

/* One phase of one token, or of those that are evaluated together; `token` counts from the first position of the prompt. */
typedef struct ps_span {
    int32_t phase;
    int32_t repetition;
    int32_t token;
    int32_t n_tokens;
    int64_t start_ns;
    int64_t end_ns;
} ps_span;

enum { PS_N_OUTPUT_VALUES = 64 };

/* What the last evaluation of a phase came to, at so many places spread over the vocabulary (the logarithms of
 * probabilities) or over an embedding. */
typedef struct ps_output {
    int32_t phase;
    int32_t repetition;
    float values[PS_N_OUTPUT_VALUES];
} ps_output;

typedef struct ps_engine ps_engine;

/* The work of two phases, as calls that an interposed library can see. */
__attribute__((noinline)) void ps_phase_copy(float *to, const float *from, size_t n);
__attribute__((noinline)) float ps_phase_softmax(float *values, size_t n);

const char *ps_engine_version(void); /* llama.cpp's and ggml's own words */

int32_t ps_engine_open(const ps_options *options, ps_engine **engine, char *error, size_t error_bytes);
void ps_engine_close(ps_engine *engine);
/* Runs the workload without keeping what it records; what was recorded before stays. */
int32_t ps_engine_warm_up(ps_engine *engine, const ps_workload *workload, char *error, size_t error_bytes);
/* Lets the engine call this between a prompt and its answer, outside of what is timed of both; NULL calls nothing. */
void ps_engine_between(ps_engine *engine, void (*between)(void *context), void *context);
/* Runs the workload and adds to what was recorded before; repetitions are numbered on. */
int32_t ps_engine_run(ps_engine *engine, const ps_workload *workload, char *error, size_t error_bytes);

const ps_span *ps_engine_spans(const ps_engine *engine, uint64_t *n_spans);
const ps_output *ps_engine_outputs(const ps_engine *engine, uint64_t *n_outputs);
/* The tokens that greedy sampling chose, one an evaluation and row; the text goes on by its own tokens. */
const int32_t *ps_engine_chosen(const ps_engine *engine, uint64_t *n_tokens);
const ps_recorder *ps_engine_recorder(const ps_engine *engine);
/* Time stamp counter against the monotonic clock, before and after the run. */
void ps_engine_clock(const ps_engine *engine, ps_clock_point *start, ps_clock_point *end);

/* Contexts on one loaded model, two with the recorder and two without, run token by token in turn (in an order drawn
 * anew each time); writes the sums of the two of each kind, pair by pair, in ns. */
int32_t ps_engine_overhead(const ps_options *options, const ps_workload *workload, int32_t n_pairs, int64_t *plain_ns,
                           int64_t *recorded_ns, int32_t prefill, char *error, size_t error_bytes);

/* One evaluation whose graph is asked for: its tokens, how many of them give logits, and the positions of the cache. */
typedef struct ps_graph_request {
    int32_t n_tokens;
    int32_t n_outputs;
    int32_t n_kv;
} ps_graph_request;

enum { PS_NO_GRAPH = -1, PS_NO_MODEL = -2 };

/* Adds the graphs that the engine would compute to a recorder, in the order of the requests; no weight is read.  Returns
 * `PS_NO_MODEL` where the engine cannot load the model, `PS_NO_GRAPH` where it can and says no graph; some architectures
 * abort the process. */
int32_t ps_engine_graphs(const ps_options *options, const ps_graph_request *requests, int32_t n_requests,
                         ps_recorder *recorder, char *error, size_t error_bytes);
/* The same of the graph by which the options' projector encodes an image; of the text's model no weight is read. */
int32_t ps_engine_image_graph(const ps_options *options, ps_recorder *recorder, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
