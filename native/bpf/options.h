/* The command line: numbers and names of counters, each checked for its range. */
#ifndef PERFSUITE_BPF_OPTIONS_H
#define PERFSUITE_BPF_OPTIONS_H

#include "problem.h"
#include "settings.h"

typedef struct ps_counter_option {
    char name[PS_BPF_COUNTER_NAME_BYTES];
    uint32_t type; /* as perf_event_attr has them */
    uint64_t config;
} ps_counter_option;

typedef enum ps_action { PS_RECORD, PS_CHECK, PS_VERSION } ps_action;

typedef struct ps_options {
    ps_action action;
    int32_t pid;
    uint32_t levels;
    uint64_t buffer_bytes; /* of the ring, or of the pages of one processor; 0: as is usual */
    uint32_t drain_ms;
    uint64_t floor_milli_tokens_per_s; /* tokens/s in thousandths; 0: no floor */
    bool with_statistics;
    uint32_t n_counters;
    ps_counter_option counters[PS_BPF_MAX_COUNTERS];
    ps_bpf_settings settings;
} ps_options;

bool ps_parse_options(int argc, char **argv, ps_options *options, ps_problem *problem);

/* Of the ring, or of one processor's pages: whole pages, a power of two of them. */
uint64_t ps_buffer_bytes(const ps_options *options);

/* A whole number without a sign, in decimal or with 0x, and nothing behind it. */
bool ps_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number);

#endif
