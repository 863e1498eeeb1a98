/* The log of the eBPF recorder: what the helper program writes to its standard output, in the machine's byte order.
 *
 * A ps_bpf_header comes first, then records, each a multiple of 8 bytes long and with its own length, so that a log
 * that was cut is read up to the cut.  Times are CLOCK_MONOTONIC in ns.  Records of one thread come in the order of
 * time; those of different threads may be a little out of order.
 */
#ifndef PERFSUITE_BPF_LOG_H
#define PERFSUITE_BPF_LOG_H

#ifndef __VMLINUX_H__ /* which has these types of its own */
#include <stdint.h>
#endif

#define PS_BPF_MAGIC "PSBPFLOG"

enum {
    PS_BPF_VERSION = 1,
    PS_BPF_MAX_TENSOR_BYTES = 512, /* sizeof(struct ggml_tensor) may not exceed it; a multiple of 8 */
    PS_BPF_MAX_SOURCES = 5,        /* sources that a structure record has, the first ones that are not NULL */
    PS_BPF_MAX_COUNTERS = 8,
    PS_BPF_COUNTER_NAME_BYTES = 32,
    PS_BPF_GUID_BYTES = 16,
    PS_BPF_MAX_IDS = 64, /* expert ids in one record */
};

/* What is recorded; bits of `levels`. */
enum {
    PS_BPF_TOKEN = 1 << 0,     /* llama_decode */
    PS_BPF_GRAPH = 1 << 1,     /* ggml_backend_graph_compute_async: one split on one backend */
    PS_BPF_OPERATOR = 1 << 2,  /* each operator of the CPU backend on each thread, by its tensor's address */
    PS_BPF_STRUCTURE = 1 << 3, /* the tensor and its sources, whenever they are not as they were last at that address */
    PS_BPF_ENDS = 1 << 4,      /* when each thread comes to a barrier: an operator's own end on it */
    PS_BPF_THREADS = 1 << 5,   /* sched_switch and sched_wakeup of the target's threads */
    PS_BPF_COUNTERS = 1 << 6,  /* perf counters with each OPERATOR and BARRIER record */
    PS_BPF_EXPERTS = 1 << 7,   /* expert ids, from the third source of MUL_MAT_ID */
};

typedef enum ps_bpf_buffer { PS_BPF_RING = 0, PS_BPF_PERF = 1 } ps_bpf_buffer;

typedef struct ps_bpf_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    int64_t start_ns; /* everything asked for is attached from here on */
    int32_t pid;
    uint32_t levels; /* at the start */
    uint32_t buffer; /* ps_bpf_buffer */
    uint32_t tensor_bytes;
    uint32_t n_cpus;
    uint32_t n_counters;
    char counters[PS_BPF_MAX_COUNTERS][PS_BPF_COUNTER_NAME_BYTES];
} ps_bpf_header;

typedef enum ps_bpf_kind {
    PS_BPF_TOKEN_BEGIN = 1, /* subject: llama_context's address; value: tokens of the batch */
    PS_BPF_TOKEN_END = 2,   /* value: what llama_decode returned */
    PS_BPF_GRAPH_BEGIN = 3, /* subject: the backend's address; then PS_BPF_GUID_BYTES: the backend's guid */
    PS_BPF_GRAPH_END = 4,
    PS_BPF_STRUCTURE_OF = 5, /* subject: address of the tensor; then tensor_bytes of it, and of each of its sources
                                (the first PS_BPF_MAX_SOURCES that are not NULL) its raw tensor_bytes; comes right before
                                the OPERATOR record of the same thread that it describes */
    PS_BPF_OPERATOR_BEGIN = 6, /* subject: address of the tensor; value: ith | nth << 16 */
    PS_BPF_BARRIER = 7,        /* a thread arrives at a barrier; the last one before the thread's next operator, or the
                                  end of the graph, is that operator's end */
    PS_BPF_SWITCH_OUT = 8,     /* value: prev_state; subject: tid of the thread that runs instead */
    PS_BPF_SWITCH_IN = 9,      /* subject: tid of the thread that ran before */
    PS_BPF_WOKEN = 10,         /* the thread in `tid` becomes runnable; subject: tid of the waker */
    PS_BPF_EXPERT_IDS = 11,    /* subject: address of the ids tensor; value: ids of one token | tokens << 16 (of the
                                  whole batch); then int32 first_token, int32 n_ids, then n_ids int32, token by token */
    PS_BPF_LEVELS = 12,        /* subject: the levels from now on; value: tokens/s in thousandths; flags: PS_BPF_LEVELS_* */
    PS_BPF_LOST = 13,          /* subject: events that found no room since the last such record */
    PS_BPF_THREAD_NAME = 14,   /* then 16 bytes: the comm of `tid` */
    PS_BPF_PROBE = 15,         /* at the end, one for each BPF program: subject: run_time_ns; then uint64 run_cnt and 32
                                  bytes: the program's name */
    PS_BPF_END = 16,           /* the last one; subject: all lost events; value: PS_BPF_ENDED_* */
} ps_bpf_kind;

enum { PS_BPF_FUSED = 1, PS_BPF_HAS_COUNTERS = 2, PS_BPF_MULTIPLEXED = 4 }; /* flags of OPERATOR_BEGIN and BARRIER */
enum { PS_BPF_LEVELS_TOLD = 1, PS_BPF_LEVELS_BELOW_FLOOR = 2, PS_BPF_LEVELS_RECOVERED = 3 };
enum { PS_BPF_ENDED_TOLD = 1, PS_BPF_ENDED_WITH_TARGET = 2, PS_BPF_ENDED_OUTPUT = 3 };

/* 40 bytes; what follows is said at the kind.  With PS_BPF_HAS_COUNTERS, n_counters uint64 follow: what the thread has
 * counted so far, scaled where counters share the hardware. */
typedef struct ps_bpf_record {
    uint16_t kind;
    uint16_t bytes; /* of the whole record */
    uint32_t tid;
    int64_t ns;
    uint64_t subject;
    int64_t value;
    uint16_t cpu;
    uint16_t flags;
    uint32_t reserved;
} ps_bpf_record;

#endif
