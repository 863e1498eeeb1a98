/* The buffer between the kernel's programs and the log: one ring for all processors, or pages for each. */
#ifndef PERFSUITE_BPF_BUFFERS_H
#define PERFSUITE_BPF_BUFFERS_H

#include "collate.h"
#include "options.h"
#include "probes.h"

struct ring_buffer;
struct perf_buffer;

typedef struct ps_buffers {
    struct ring_buffer *ring;
    struct perf_buffer *pages;
    ps_collation collation;
    uint64_t capacity_bytes; /* of the ring, or of one processor's pages */
    uint64_t drained_bytes;  /* at the last time */
    ps_take_record take;
    void *context;
} ps_buffers;

/* `take` gets every record that comes out. */
bool ps_buffers_open(ps_buffers *buffers, const ps_options *options, const ps_probes *probes, ps_take_record take,
                     void *context, ps_problem *problem);

/* Hands on what there is; `is_last` says that no more will come. False where a record was not taken. */
bool ps_buffers_drain(ps_buffers *buffers, bool is_last);

void ps_buffers_close(ps_buffers *buffers);

#endif
