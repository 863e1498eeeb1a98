/* Room for records that are too large for a program's stack: one for each processor, taken by one program at a time.
 *
 * A program may be pre-empted by another thread's on the same processor, hence `taken`; whoever finds it taken goes
 * without.
 */
#ifndef PERFSUITE_SCRATCH_BPF_H
#define PERFSUITE_SCRATCH_BPF_H

#include "emit.bpf.h"

enum { PS_SCRATCH_BYTES = PS_BPF_MAX_TENSOR_BYTES * (1 + PS_BPF_MAX_SOURCES) };

typedef struct ps_scratch {
    ps_bpf_record record;
    uint8_t content[PS_SCRATCH_BYTES];
    uint32_t taken;
    uint32_t reserved;
} ps_scratch;

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, ps_scratch);
} scratches SEC(".maps");

static __always_inline ps_scratch *take_scratch(void) {
    uint32_t first = 0;
    ps_scratch *scratch = bpf_map_lookup_elem(&scratches, &first);
    if (scratch && __sync_val_compare_and_swap(&scratch->taken, 0, 1) == 0) {
        return scratch;
    }
    count_lost();
    return NULL;
}

static __always_inline void give_scratch(ps_scratch *scratch) { __sync_lock_test_and_set(&scratch->taken, 0); }

#endif
