/* The file of the phase tracer: a header, then the calls in the order in which they returned. */
#ifndef PERFSUITE_CALL_TRACE_H
#define PERFSUITE_CALL_TRACE_H

#include <stdint.h>

#define PS_TRACE_MAGIC "pscalls"

typedef enum ps_traced_function {
    PS_TRACED_DECODE = 0,
    PS_TRACED_SYNCHRONIZE = 1,
    PS_TRACED_GET_LOGITS = 2,
    PS_TRACED_COPY = 3,
    PS_TRACED_SOFTMAX = 4,
    PS_TRACED_SAMPLE = 5,
    PS_TRACED_GET_ROWS = 6,
    PS_TRACED_GRAPH = 7,
} ps_traced_function;

/* The same moment on both clocks, to within the time that it takes to read one. */
typedef struct ps_trace_instant {
    int64_t raw_ns;       /* CLOCK_MONOTONIC_RAW, as the calls */
    int64_t monotonic_ns; /* CLOCK_MONOTONIC, as the suite's own spans */
} ps_trace_instant;

typedef struct ps_trace_header {
    char magic[8];
    uint64_t n_calls; /* that follow */
    uint64_t n_lost;  /* that found the buffer full */
    ps_trace_instant first, last;
} ps_trace_header;

typedef struct ps_traced_call {
    int64_t entry_ns, exit_ns;
    int32_t function;
    int32_t count; /* tokens of the batch of llama_decode, else 0 */
    int32_t thread;
    int32_t reserved;
} ps_traced_call;

#endif
