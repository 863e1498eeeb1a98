/* The eBPF recorder's programs: what the kernel runs where the target calls llama.cpp's functions, and where it
 * switches the target's threads.
 */
#include "counting.bpf.h"
#include "experts.bpf.h"
#include "structure.bpf.h"

char licence[] SEC("license") = "GPL";

/* ---- tokens and graphs ----------------------------------------------------------------------------------------- */

/* llama_batch is passed by value and too large for registers: on the stack behind the return address on x86-64, by a
 * pointer to a copy on arm64. Its first member is n_tokens. */
static __always_inline uint64_t batch_address(struct pt_regs *ctx) {
#if defined(__TARGET_ARCH_arm64)
    return PT_REGS_PARM2(ctx);
#else
    return PT_REGS_SP(ctx) + sizeof(uint64_t);
#endif
}

SEC("uprobe")
int token_begin(struct pt_regs *ctx) {
    if (!is_target()) {
        return 0;
    }
    int32_t n_tokens = 0;
    bpf_probe_read_user(&n_tokens, sizeof(n_tokens), (const void *)batch_address(ctx));
    ps_bpf_record record = record_of(PS_BPF_TOKEN_BEGIN, PT_REGS_PARM1(ctx), n_tokens);
    emit(ctx, &record, sizeof(record));
    return 0;
}

SEC("uretprobe")
int token_end(struct pt_regs *ctx) {
    if (is_target()) {
        ps_bpf_record record = record_of(PS_BPF_TOKEN_END, 0, (int32_t)PT_REGS_RC(ctx));
        emit(ctx, &record, sizeof(record));
    }
    return 0;
}

typedef struct ps_graph_record {
    ps_bpf_record record;
    uint8_t guid[PS_BPF_GUID_BYTES];
} ps_graph_record;

/* struct ggml_backend begins with a pointer to the guid of what it is. */
SEC("uprobe")
int graph_begin(struct pt_regs *ctx) {
    if (!is_target()) {
        return 0;
    }
    begin_evaluation((uint32_t)bpf_get_current_pid_tgid());
    if (levels & PS_BPF_GRAPH) {
        uint64_t backend = PT_REGS_PARM1(ctx), guid = 0;
        ps_graph_record graph = {.record = record_of(PS_BPF_GRAPH_BEGIN, backend, 0)};
        graph.record.bytes = sizeof(graph);
        bpf_probe_read_user(&guid, sizeof(guid), (const void *)backend);
        bpf_probe_read_user(graph.guid, sizeof(graph.guid), (const void *)guid);
        emit(ctx, &graph, sizeof(graph));
    }
    return 0;
}

SEC("uretprobe")
int graph_end(struct pt_regs *ctx) {
    if (is_target()) {
        ps_bpf_record record = record_of(PS_BPF_GRAPH_END, 0, (int32_t)PT_REGS_RC(ctx));
        emit(ctx, &record, sizeof(record));
    }
    return 0;
}

/* ---- operators ------------------------------------------------------------------------------------------------- */

/* ggml_compute_params begins with the thread's number and how many there are. The time is taken last: what this costs
 * comes before the operator. */
static __always_inline void operator_of(void *ctx, uint64_t params, uint64_t tensor, uint64_t fused) {
    int32_t place[2] = {0};
    bpf_probe_read_user(place, sizeof(place), (const void *)params);
    if (place[0] == 0 && levels & PS_BPF_STRUCTURE) {
        if (fused) {
            tell_structure(ctx, fused);
        }
        tell_structure(ctx, tensor);
    }
    if (place[0] == 0 && levels & PS_BPF_EXPERTS && !fused) {
        tell_experts(ctx, tensor);
    }
    if (levels & PS_BPF_OPERATOR) {
        int64_t value = (place[0] & 0xffff) | (int64_t)(place[1] & 0xffff) << 16;
        emit_counted(ctx, PS_BPF_OPERATOR_BEGIN, tensor, value, fused ? PS_BPF_FUSED : 0);
    }
}

SEC("uprobe")
int operator_begin(struct pt_regs *ctx) {
    if (is_target()) {
        operator_of(ctx, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), 0);
    }
    return 0;
}

SEC("uprobe")
int fused_begin(struct pt_regs *ctx) {
    if (is_target()) {
        operator_of(ctx, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx));
    }
    return 0;
}

SEC("uprobe")
int barrier_begin(struct pt_regs *ctx) {
    if (is_target()) {
        emit_counted(ctx, PS_BPF_BARRIER, 0, 0, 0);
    }
    return 0;
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

/* Before Linux 5.14 the field had another name. */
struct task_struct___before_5_14 {
    long state;
} __attribute__((preserve_access_index));

static __always_inline int64_t state_of(struct task_struct *task) {
    if (bpf_core_field_exists(task->__state)) {
        return BPF_CORE_READ(task, __state);
    }
    return BPF_CORE_READ((struct task_struct___before_5_14 *)task, state);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, bool is_preempted, struct task_struct *previous, struct task_struct *next) {
    bool was_target = previous->tgid == settings.tgid, is_next = next->tgid == settings.tgid;
    if (has_left || (!was_target && !is_next)) {
        return 0;
    }
    if (settings.n_counters && levels & PS_BPF_COUNTERS) {
        if (was_target) {
            count_switch_out(previous->pid);
        }
        if (is_next) {
            count_switch_in(next->pid);
        }
    }
    if (levels & PS_BPF_THREADS) {
        ps_bpf_record record = record_of(PS_BPF_SWITCH_OUT, next->pid, is_preempted ? 0 : state_of(previous));
        record.tid = previous->pid;
        if (was_target) {
            emit(ctx, &record, sizeof(record));
        }
        if (is_next) {
            record.kind = PS_BPF_SWITCH_IN;
            record.tid = next->pid;
            record.subject = previous->pid;
            record.value = 0;
            emit(ctx, &record, sizeof(record));
        }
    }
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(woken, struct task_struct *task) {
    if (!has_left && task->tgid == settings.tgid) {
        ps_bpf_record record = record_of(PS_BPF_WOKEN, (uint32_t)bpf_get_current_pid_tgid(), 0);
        record.tid = task->pid;
        emit(ctx, &record, sizeof(record));
    }
    return 0;
}

/* The next program may have another user's privileges; nothing of it is recorded, from its first instruction on. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(executed, struct task_struct *task) {
    (void)ctx;
    if (task->tgid == settings.tgid) {
        has_left = 1;
    }
    return 0;
}

/* ---- a probe on the helper itself, to see whether probes work here --------------------------------------------- */

uint64_t n_checked;

SEC("uprobe")
int check_begin(void *ctx) {
    (void)ctx;
    if (is_target()) {
        __sync_fetch_and_add(&n_checked, 1);
    }
    return 0;
}
