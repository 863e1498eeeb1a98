/* How a record gets out of the kernel, for all programs. */
#ifndef PERFSUITE_EMIT_BPF_H
#define PERFSUITE_EMIT_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "settings.h"

const volatile ps_bpf_settings settings;

/* What the compiler may not see through, so that a bound is checked on the very register that is used. */
#define OPAQUE(variable) __asm__ volatile("" : "+r"(variable))

uint32_t levels;        /* what is recorded now */
uint64_t counter_epoch; /* goes up whenever counting begins anew */
uint64_t lost;          /* events that found no room */
uint32_t has_left;      /* the target has executed another program, which is none of ours */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096); /* the helper sets it */
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, sizeof(uint32_t));
    __uint(value_size, sizeof(uint32_t));
} pages SEC(".maps");

static __always_inline void count_lost(void) { __sync_fetch_and_add(&lost, 1); }

/* Nobody is woken: the helper comes by in time. */
static __always_inline bool emit(void *ctx, void *record, uint64_t n_bytes) {
    long failed = settings.buffer == PS_BPF_PERF
                      ? bpf_perf_event_output(ctx, &pages, BPF_F_CURRENT_CPU, record, n_bytes)
                      : bpf_ringbuf_output(&ring, record, n_bytes, BPF_RB_NO_WAKEUP);
    if (failed) {
        count_lost();
    }
    return !failed;
}

static __always_inline ps_bpf_record record_of(uint16_t kind, uint64_t subject, int64_t value) {
    ps_bpf_record record = {
        .kind = kind,
        .bytes = sizeof(record),
        .tid = (uint32_t)bpf_get_current_pid_tgid(),
        .ns = (int64_t)bpf_ktime_get_ns(),
        .subject = subject,
        .value = value,
        .cpu = (uint16_t)bpf_get_smp_processor_id(),
    };
    return record;
}

/* A probe is set for the memory of the target, which another process may share. */
static __always_inline bool is_target(void) {
    return !has_left && (int32_t)(bpf_get_current_pid_tgid() >> 32) == settings.tgid;
}

#endif
