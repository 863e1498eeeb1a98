/* Counters of a thread, out of those of the processors that it ran on.
 *
 * Each counter runs on every processor. When a thread is switched in, what the processor's counters say is noted; when
 * it is switched out, what they have gained is its own. Where counters share the hardware, the gain is scaled by the
 * time that the counter was wanted over the time that it ran.
 */
#ifndef PERFSUITE_COUNTING_BPF_H
#define PERFSUITE_COUNTING_BPF_H

#include "emit.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); /* at counter x processors + processor */
    __uint(key_size, sizeof(uint32_t));
    __uint(value_size, sizeof(uint32_t));
} counters SEC(".maps");

typedef struct ps_counted_thread {
    uint64_t epoch;
    uint64_t n_switches;
    struct bpf_perf_event_value noted[PS_BPF_MAX_COUNTERS];
    uint64_t sums[PS_BPF_MAX_COUNTERS];
} ps_counted_thread;

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, uint32_t); /* tid */
    __type(value, ps_counted_thread);
} counted_threads SEC(".maps");

static const ps_counted_thread nothing_counted;

static __always_inline bool read_counter(uint32_t counter, struct bpf_perf_event_value *value) {
    uint64_t index = counter * settings.n_cpus + bpf_get_smp_processor_id();
    return bpf_perf_event_read_value(&counters, index, value, sizeof(*value)) == 0;
}

static __always_inline void note_counters(ps_counted_thread *thread) {
    for (uint32_t i = 0; i < PS_BPF_MAX_COUNTERS && i < settings.n_counters; i++) {
        read_counter(i, &thread->noted[i]);
    }
    thread->n_switches++;
}

static __always_inline uint64_t gained(const ps_counted_thread *thread, uint32_t i, uint16_t *flags) {
    struct bpf_perf_event_value now;
    if (!read_counter(i, &now)) {
        return 0;
    }
    uint64_t gain = now.counter - thread->noted[i].counter;
    uint64_t enabled = now.enabled - thread->noted[i].enabled;
    uint64_t running = now.running - thread->noted[i].running;
    if (running == enabled) {
        return gain;
    }
    *flags |= PS_BPF_MULTIPLEXED;
    return running ? gain * ((enabled << 10) / running) >> 10 : 0;
}

/* The thread's entry; a new one begins with nothing. */
static __always_inline ps_counted_thread *counted_thread(uint32_t tid) {
    ps_counted_thread *thread = bpf_map_lookup_elem(&counted_threads, &tid);
    if (thread && thread->epoch == counter_epoch) {
        return thread;
    }
    bpf_map_update_elem(&counted_threads, &tid, &nothing_counted, BPF_ANY);
    thread = bpf_map_lookup_elem(&counted_threads, &tid);
    if (thread) {
        note_counters(thread);
        thread->epoch = counter_epoch;
    }
    return thread;
}

static __always_inline void count_switch_in(uint32_t tid) {
    ps_counted_thread *thread = counted_thread(tid);
    if (thread) {
        note_counters(thread);
    }
}

static __always_inline void count_switch_out(uint32_t tid) {
    ps_counted_thread *thread = bpf_map_lookup_elem(&counted_threads, &tid);
    if (!thread || thread->epoch != counter_epoch) {
        return;
    }
    for (uint32_t i = 0; i < PS_BPF_MAX_COUNTERS && i < settings.n_counters; i++) {
        uint16_t ignored = 0;
        thread->sums[i] += gained(thread, i, &ignored);
    }
}

/* What the running thread has counted so far; read again if it was switched meanwhile. */
static __always_inline bool read_counted(uint32_t tid, uint64_t *values, uint16_t *flags) {
    ps_counted_thread *thread = counted_thread(tid);
    if (!thread) {
        return false;
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        volatile uint64_t *n_switches = &thread->n_switches;
        uint64_t before = *n_switches;
        for (uint32_t i = 0; i < PS_BPF_MAX_COUNTERS && i < settings.n_counters; i++) {
            values[i] = thread->sums[i] + gained(thread, i, flags);
        }
        if (*n_switches == before) {
            break;
        }
    }
    *flags |= PS_BPF_HAS_COUNTERS;
    return true;
}

typedef struct ps_counted_record {
    ps_bpf_record record;
    uint64_t values[PS_BPF_MAX_COUNTERS];
} ps_counted_record;

/* An OPERATOR or BARRIER record, with counters where they are wanted. */
static __always_inline void emit_counted(void *ctx, uint16_t kind, uint64_t subject, int64_t value, uint16_t flags) {
    ps_counted_record counted = {.record = record_of(kind, subject, value)};
    counted.record.flags = flags;
    if (settings.n_counters && settings.n_counters <= PS_BPF_MAX_COUNTERS && levels & PS_BPF_COUNTERS &&
        read_counted(counted.record.tid, counted.values, &counted.record.flags)) {
        counted.record.bytes = sizeof(ps_bpf_record) + settings.n_counters * sizeof(uint64_t);
        emit(ctx, &counted, sizeof(ps_bpf_record) + settings.n_counters * sizeof(uint64_t));
        return;
    }
    emit(ctx, &counted, sizeof(ps_bpf_record));
}

#endif
