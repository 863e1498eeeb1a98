/* What the helper tells its programs in the kernel before they are loaded.
 *
 * The programs know nothing of ggml's headers: where its fields lie comes from here, so that one helper serves every
 * build of llama.cpp.
 */
#ifndef PERFSUITE_BPF_SETTINGS_H
#define PERFSUITE_BPF_SETTINGS_H

#include "perfsuite/bpf_log.h"

enum {
    PS_BPF_MAX_SOURCE_SLOTS = 16, /* GGML_MAX_SRC may not exceed it */
    PS_BPF_MAX_ID_ROWS = 1024,    /* tokens of a batch whose expert ids are read */
};

typedef struct ps_bpf_settings {
    int32_t tgid;
    uint32_t buffer; /* ps_bpf_buffer */
    uint32_t n_cpus;
    uint32_t n_counters;
    uint32_t tensor_bytes;
    uint32_t ne_at;
    uint32_t nb_at;
    uint32_t op_at;
    uint32_t src_at;
    uint32_t n_src;
    uint32_t data_at;
    uint32_t expert_op; /* the number of MUL_MAT_ID */
} ps_bpf_settings;

#endif
