/* The experts that a layer's router chose: the third source of an expert product, read before it is computed. */
#ifndef PERFSUITE_EXPERTS_BPF_H
#define PERFSUITE_EXPERTS_BPF_H

#include "scratch.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, uint32_t);   /* tid */
    __type(value, uint64_t); /* graphs that this thread has begun to compute */
} evaluations SEC(".maps");

typedef struct ps_told_ids {
    uint32_t tid;
    uint32_t reserved;
    uint64_t evaluation;
} ps_told_ids;

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, uint64_t); /* the ids tensor's address */
    __type(value, ps_told_ids);
} told_ids SEC(".maps");

typedef struct ps_ids_tensor {
    uint64_t ne[2];
    uint64_t nb[2];
    uint64_t data;
} ps_ids_tensor;

/* What PS_BPF_EXPERT_IDS has behind the record. */
typedef struct ps_ids_chunk {
    int32_t first_token;
    int32_t n_ids;
    int32_t ids[2 * PS_BPF_MAX_IDS]; /* so many that the verifier sees no row go beyond */
} ps_ids_chunk;

static __always_inline uint64_t evaluation_of(uint32_t tid) {
    uint64_t *n_begun = bpf_map_lookup_elem(&evaluations, &tid);
    return n_begun ? *n_begun : 0;
}

static __always_inline void begin_evaluation(uint32_t tid) {
    uint64_t next = evaluation_of(tid) + 1;
    bpf_map_update_elem(&evaluations, &tid, &next, BPF_ANY);
}

/* Gate, up and down of a layer share their ids: the first of them in an evaluation tells them. */
static __always_inline bool is_told(uint64_t tensor, uint32_t tid) {
    ps_told_ids now = {.tid = tid, .evaluation = evaluation_of(tid)};
    ps_told_ids *last = bpf_map_lookup_elem(&told_ids, &tensor);
    if (last && last->tid == now.tid && last->evaluation == now.evaluation) {
        return true;
    }
    bpf_map_update_elem(&told_ids, &tensor, &now, BPF_ANY);
    return false;
}

static __always_inline bool read_user_word(uint64_t address, uint64_t *word) {
    return bpf_probe_read_user(word, sizeof(*word), (const void *)address) == 0;
}

static __always_inline bool read_ids_tensor(uint64_t tensor, ps_ids_tensor *ids) {
    return bpf_probe_read_user(ids->ne, sizeof(ids->ne), (const void *)(tensor + settings.ne_at)) == 0 &&
           bpf_probe_read_user(ids->nb, sizeof(ids->nb), (const void *)(tensor + settings.nb_at)) == 0 &&
           read_user_word(tensor + settings.data_at, &ids->data) && ids->ne[0] > 0 && ids->ne[0] <= PS_BPF_MAX_IDS &&
           ids->ne[1] <= PS_BPF_MAX_ID_ROWS;
}

static __always_inline void emit_chunk(void *ctx, ps_scratch *scratch, uint64_t tensor, const ps_ids_tensor *ids) {
    ps_ids_chunk *chunk = (ps_ids_chunk *)scratch->content;
    uint64_t n_ids = (uint32_t)chunk->n_ids;
    OPAQUE(n_ids);
    if (n_ids == 0 || n_ids > PS_BPF_MAX_IDS) {
        return;
    }
    uint64_t n_bytes = sizeof(ps_bpf_record) + 2 * sizeof(int32_t) + ((n_ids + 1) & ~1ull) * sizeof(int32_t);
    chunk->ids[n_ids] = 0; /* what fills the record up to 8 bytes */
    scratch->record = record_of(PS_BPF_EXPERT_IDS, tensor, (int64_t)(ids->ne[0] | ids->ne[1] << 16));
    scratch->record.bytes = n_bytes;
    emit(ctx, scratch, n_bytes);
}

static __always_inline bool read_row(ps_ids_chunk *chunk, uint64_t first, uint64_t n_bytes, uint64_t address) {
    OPAQUE(first);
    OPAQUE(n_bytes);
    return first <= PS_BPF_MAX_IDS && n_bytes <= PS_BPF_MAX_IDS * sizeof(int32_t) &&
           bpf_probe_read_user(&chunk->ids[first], n_bytes, (const void *)address) == 0;
}

static __always_inline void emit_ids(void *ctx, ps_scratch *scratch, uint64_t tensor, const ps_ids_tensor *ids) {
    ps_ids_chunk *chunk = (ps_ids_chunk *)scratch->content;
    uint32_t n_used = (uint32_t)ids->ne[0], n_ids = 0;
    chunk->first_token = 0;
    for (uint32_t token = 0; token < PS_BPF_MAX_ID_ROWS && token < ids->ne[1]; token++) {
        if (n_ids + n_used > PS_BPF_MAX_IDS) {
            chunk->n_ids = n_ids;
            emit_chunk(ctx, scratch, tensor, ids);
            chunk->first_token = token;
            n_ids = 0;
        }
        if (!read_row(chunk, n_ids, n_used * sizeof(int32_t), ids->data + token * ids->nb[1])) {
            count_lost();
            return;
        }
        n_ids += n_used;
    }
    chunk->n_ids = n_ids;
    emit_chunk(ctx, scratch, tensor, ids);
}

static __always_inline bool is_expert_product(uint64_t tensor) {
    uint32_t op = 0;
    return bpf_probe_read_user(&op, sizeof(op), (const void *)(tensor + settings.op_at)) == 0 &&
           op == settings.expert_op;
}

static __always_inline void tell_experts(void *ctx, uint64_t product) {
    uint64_t tensor = 0;
    ps_ids_tensor ids;
    if (!is_expert_product(product) || !read_user_word(product + settings.src_at + 2 * sizeof(tensor), &tensor) ||
        !tensor || is_told(tensor, (uint32_t)bpf_get_current_pid_tgid())) {
        return;
    }
    if (!read_ids_tensor(tensor, &ids)) {
        count_lost();
        return;
    }
    ps_scratch *scratch = take_scratch();
    if (scratch) {
        emit_ids(ctx, scratch, tensor, &ids);
        give_scratch(scratch);
    }
}

#endif
