/* The log on standard output: whole records through a buffer; the first failure ends it. */
#ifndef PERFSUITE_BPF_LOG_OUT_H
#define PERFSUITE_BPF_LOG_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "perfsuite/bpf_log.h"
#include "perfsuite/clock.h"

enum { PS_LOG_BUFFER_BYTES = 1 << 18 };

typedef struct ps_log_out {
    int fd;
    bool may_block; /* it is no file but has a reader */
    int limit_ms;   /* how long to wait for that reader */
    int error;      /* errno of the write that failed; 0 while all is well */
    uint32_t n_buffered;
    char buffer[PS_LOG_BUFFER_BYTES];
} ps_log_out;

void ps_log_open(ps_log_out *out, int fd, int limit_ms);

bool ps_log_write(ps_log_out *out, const void *bytes, uint32_t n_bytes);

/* A record of the helper's own, with what follows it; at the time `ns`, or now where that is 0. */
bool ps_log_record(ps_log_out *out, ps_bpf_record record, const void *content, uint16_t n_bytes);

bool ps_log_flush(ps_log_out *out);

#endif
