/* Puts records of several processors in the order of time.
 *
 * Each processor has pages of its own, and a thread may move between them; so records are held back until none that is
 * older can come any more.
 */
#ifndef PERFSUITE_BPF_COLLATE_H
#define PERFSUITE_BPF_COLLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfsuite/bpf_log.h"

typedef struct ps_held {
    int64_t ns;
    size_t at; /* also the order in which records came */
} ps_held;

typedef struct ps_collation {
    char *bytes;
    size_t n_bytes, capacity_bytes;
    ps_held *held;
    size_t n_held, capacity_held;
} ps_collation;

typedef bool (*ps_take_record)(void *context, const ps_bpf_record *record);

/* False where there is no memory. */
bool ps_collate(ps_collation *collation, const void *record, size_t n_bytes);

/* Hands on the records up to a time in their order, and keeps the others; false where one was not taken. */
bool ps_collate_until(ps_collation *collation, int64_t ns, ps_take_record take, void *context);

void ps_collation_close(ps_collation *collation);

#endif
