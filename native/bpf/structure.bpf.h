/* The tensor of an operator and its sources, told when they are not as they were last at that address. */
#ifndef PERFSUITE_STRUCTURE_BPF_H
#define PERFSUITE_STRUCTURE_BPF_H

#include "scratch.bpf.h"

enum { PS_CHUNK_WORDS = 32, PS_CHUNK_BYTES = PS_CHUNK_WORDS * 8, PS_NE_BYTES = 32 };

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, uint64_t);   /* the tensor's address */
    __type(value, uint64_t); /* the hash that was told last */
} told SEC(".maps");

static __always_inline uint64_t mix(uint64_t hash, uint64_t word) {
    return ((hash << 5 | hash >> 59) ^ word) * 0x9E3779B97F4A7C15ull;
}

static __always_inline bool hash_user(uint64_t address, uint32_t n_bytes, uint64_t *words, uint64_t *hash) {
    if (n_bytes > PS_CHUNK_BYTES || bpf_probe_read_user(words, n_bytes, (const void *)address)) {
        return false;
    }
    for (uint32_t i = 0; i < PS_CHUNK_WORDS && i < n_bytes / 8; i++) {
        *hash = mix(*hash, words[i]);
    }
    return true;
}

/* Over all of the tensor, and over the dimensions of its second source: a flash attention's own stay as they are while
 * the context grows. */
static __always_inline bool hash_tensor(uint64_t tensor, uint64_t *hash) {
    uint64_t words[PS_CHUNK_WORDS] = {0};
    uint32_t rest = settings.tensor_bytes > PS_CHUNK_BYTES ? settings.tensor_bytes - PS_CHUNK_BYTES : 0;
    uint64_t second = 0;
    if (!hash_user(tensor, settings.tensor_bytes - rest, words, hash)) {
        return false;
    }
    if (rest && !hash_user(tensor + PS_CHUNK_BYTES, rest, words, hash)) {
        return false;
    }
    bpf_probe_read_user(&second, sizeof(second), (const void *)(tensor + settings.src_at + sizeof(second)));
    return !second || hash_user(second + settings.ne_at, PS_NE_BYTES, words, hash);
}

static __always_inline bool read_tensor(ps_scratch *scratch, uint32_t place, uint64_t tensor) {
    uint32_t at = place * settings.tensor_bytes;
    return settings.tensor_bytes <= PS_BPF_MAX_TENSOR_BYTES && at <= PS_SCRATCH_BYTES - PS_BPF_MAX_TENSOR_BYTES &&
           bpf_probe_read_user(scratch->content + at, settings.tensor_bytes, (const void *)tensor) == 0;
}

static __always_inline bool fill_structure(ps_scratch *scratch, uint64_t tensor) {
    uint32_t n_tensors = 1;
    if (!read_tensor(scratch, 0, tensor)) {
        return false;
    }
    for (uint32_t i = 0; i < PS_BPF_MAX_SOURCE_SLOTS && i < settings.n_src; i++) {
        uint64_t source = *(uint64_t *)(scratch->content + settings.src_at + i * sizeof(source));
        if (source && n_tensors <= PS_BPF_MAX_SOURCES) {
            if (!read_tensor(scratch, n_tensors, source)) {
                return false;
            }
            n_tensors++;
        }
    }
    scratch->record = record_of(PS_BPF_STRUCTURE_OF, tensor, 0);
    scratch->record.bytes = sizeof(ps_bpf_record) + n_tensors * settings.tensor_bytes;
    return true;
}

static __always_inline void emit_structure(void *ctx, uint64_t tensor, uint64_t hash) {
    ps_scratch *scratch = take_scratch();
    if (!scratch) {
        return;
    }
    if (fill_structure(scratch, tensor)) {
        uint64_t n_bytes = scratch->record.bytes;
        if (n_bytes <= sizeof(ps_bpf_record) + PS_SCRATCH_BYTES && emit(ctx, scratch, n_bytes)) {
            bpf_map_update_elem(&told, &tensor, &hash, BPF_ANY);
        }
    } else {
        count_lost();
    }
    give_scratch(scratch);
}

static __always_inline void tell_structure(void *ctx, uint64_t tensor) {
    uint64_t hash = 0;
    if (!hash_tensor(tensor, &hash)) {
        count_lost();
        return;
    }
    uint64_t *last = bpf_map_lookup_elem(&told, &tensor);
    if (!last || *last != hash) {
        emit_structure(ctx, tensor, hash);
    }
}

#endif
