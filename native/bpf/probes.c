#define _GNU_SOURCE
#include "probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "first_instructions.h"
#include "probes.skel.h"

enum { DECODE, GRAPH_COMPUTE, OPERATOR, FUSED, BARRIER, TRACEPOINT };

static const ps_function FUNCTIONS[PS_N_FUNCTIONS] = {
    [DECODE] = {.name = "llama_decode", .library = "libllama"},
    [GRAPH_COMPUTE] = {.name = "ggml_backend_graph_compute_async", .library = "libggml-base"},
    [OPERATOR] = {.name = "ggml_cpu_extra_compute_forward", .library = "libggml-cpu"},
    [FUSED] = {.name = "ggml_compute_forward_rms_norm_mul_fused", .library = "libggml-cpu"},
    [BARRIER] = {.name = "ggml_barrier", .library = "libggml-cpu"},
};

/* Which program is attached where, for which levels; threads first, so that counting knows them. */
typedef struct attachment {
    const char *program;
    uint32_t levels;
    int function;
    bool is_at_return;
} attachment;

static const attachment ATTACHMENTS[PS_N_ATTACHMENTS] = {
    {"switched", PS_BPF_THREADS | PS_BPF_COUNTERS, TRACEPOINT, false},
    {"woken", PS_BPF_THREADS, TRACEPOINT, false},
    {"token_end", PS_BPF_TOKEN, DECODE, true},
    {"token_begin", PS_BPF_TOKEN, DECODE, false},
    {"graph_end", PS_BPF_GRAPH, GRAPH_COMPUTE, true},
    {"graph_begin", PS_BPF_GRAPH | PS_BPF_EXPERTS, GRAPH_COMPUTE, false},
    {"barrier_begin", PS_BPF_ENDS, BARRIER, false},
    {"fused_begin", PS_BPF_OPERATOR | PS_BPF_STRUCTURE, FUSED, false},
    {"operator_begin", PS_BPF_OPERATOR | PS_BPF_STRUCTURE | PS_BPF_EXPERTS, OPERATOR, false},
};

static char last_warning[256];

/* Keeps the first thing that libbpf warns of, for the one line that is told. */
static int keep_warning(enum libbpf_print_level level, const char *format, va_list arguments) {
    if (level == LIBBPF_WARN && !last_warning[0]) {
        vsnprintf(last_warning, sizeof(last_warning), format, arguments);
        last_warning[strcspn(last_warning, "\n")] = '\0';
    }
    return 0;
}

void ps_probes_begin(ps_probes *probes) {
    memset(probes, 0, sizeof(*probes));
    memcpy(probes->functions, FUNCTIONS, sizeof(FUNCTIONS));
    for (int i = 0; i < PS_N_FUNCTIONS; i++) {
        probes->functions[i].fd = -1;
    }
    libbpf_set_print(keep_warning);
}

static bool give_counters(const ps_probes *probes, uint32_t n_entries, const int *fds, ps_problem *problem) {
    int map = bpf_map__fd(probes->skeleton->maps.counters);
    for (uint32_t i = 0; i < n_entries; i++) {
        if (fds[i] >= 0 && bpf_map_update_elem(map, &i, &fds[i], BPF_ANY) != 0) {
            return ps_fail(problem, "the kernel's programs cannot read the counters (%s)", strerror(errno));
        }
    }
    return true;
}

/* Functions without a probe at their return, which must sit at the very entry, get theirs where it costs least. */
static void move_to_cheap_places(ps_probes *probes) {
#if defined(__x86_64__)
    for (int i = OPERATOR; i <= BARRIER; i++) {
        uint8_t code[48];
        ps_function *function = &probes->functions[i];
        ssize_t n_read = function->fd < 0 ? -1 : pread(function->fd, code, sizeof(code), (off_t)function->offset);
        if (n_read > 0) {
            function->offset += ps_cheap_place(code, (size_t)n_read);
        }
    }
#else
    (void)probes;
#endif
}

static void prepare_programs(ps_probes *probes) {
    struct bpf_program *program;
    bpf_object__for_each_program(program, probes->skeleton->obj) {
        if (bpf_program__type(program) == BPF_PROG_TYPE_KPROBE) {
            ps_prepare_uprobe(program, probes->way);
        }
    }
}

static bool fail_to_attach(const char *program, ps_problem *problem) {
    if (errno == EOPNOTSUPP) {
        return ps_fail(problem, "this kernel lets no process without CAP_SYS_ADMIN set probes: it takes Linux 6.6 or "
                                "newer, or one that does not restrict them");
    }
    return ps_fail(problem, "%s: cannot be attached (%s) %s", program, strerror(errno), last_warning);
}

/* From before anything is attached, and at all levels. */
static bool watch_for_exec(struct probes *skeleton, ps_problem *problem) {
    skeleton->links.executed = bpf_program__attach(skeleton->progs.executed);
    return skeleton->links.executed || fail_to_attach("executed", problem);
}

bool ps_probes_load(ps_probes *probes, const ps_options *options, int n_cpus, const int *counter_fds,
                    ps_problem *problem) {
    uint32_t n_entries = (uint32_t)n_cpus * options->n_counters;
    struct probes *skeleton = probes->skeleton = probes__open();
    probes->pid = options->pid;
    if (!skeleton) {
        return ps_fail(problem, "the kernel's programs cannot be opened (%s)", strerror(errno));
    }
    if (!ps_choose_uprobe_way(&probes->way, problem)) {
        return false;
    }
    skeleton->rodata->settings = options->settings;
    skeleton->rodata->settings.n_cpus = (uint32_t)n_cpus;
    bool is_ring = options->settings.buffer == PS_BPF_RING;
    bpf_map__set_max_entries(skeleton->maps.ring, (uint32_t)(is_ring ? ps_buffer_bytes(options) : sysconf(_SC_PAGESIZE)));
    bpf_map__set_max_entries(skeleton->maps.counters, n_entries ? n_entries : 1);
    move_to_cheap_places(probes);
    prepare_programs(probes);
    last_warning[0] = '\0';
    if (probes__load(skeleton) != 0) {
        return ps_fail(problem, "the kernel refuses the programs (%s): %s", strerror(errno), last_warning);
    }
    return watch_for_exec(skeleton, problem) && give_counters(probes, n_entries, counter_fds, problem);
}

static bool check_function(const ps_function *function, ps_problem *problem) {
    if (function->fd >= 0) {
        return true;
    }
    if (!function->has_library) {
        return ps_fail(problem, "%s: not in the process, which has not loaded %s yet, or not as a library", function->name,
                       function->library);
    }
    return ps_fail(problem, "%s: the %s of the process does not define it, or the file has been replaced since",
                   function->name, function->library);
}

static bool attach_to(ps_probes *probes, struct bpf_program *program, const attachment *at, ps_uprobe *attached) {
    if (at->function == TRACEPOINT) {
        attached->link = bpf_program__attach(program);
        return attached->link;
    }
    const ps_function *function = &probes->functions[at->function];
    return ps_attach_uprobe(attached, probes->way, program, probes->pid, function, at->is_at_return);
}

static bool attach(ps_probes *probes, int i, ps_problem *problem) {
    const attachment *at = &ATTACHMENTS[i];
    if (at->function == FUSED && probes->functions[FUSED].fd < 0) {
        return true; /* a llama.cpp that fuses nothing */
    }
    if (at->function != TRACEPOINT && !check_function(&probes->functions[at->function], problem)) {
        return false;
    }
    struct bpf_program *program = bpf_object__find_program_by_name(probes->skeleton->obj, at->program);
    last_warning[0] = '\0';
    return (program && attach_to(probes, program, at, &probes->attached[i])) || fail_to_attach(at->program, problem);
}

static bool is_attached(const ps_probes *probes, int i) { return probes->attached[i].link || probes->attached[i].fd; }

bool ps_probes_set_levels(ps_probes *probes, uint32_t levels, ps_problem *problem) {
    uint32_t begun = levels & ~probes->levels;
    for (int i = PS_N_ATTACHMENTS - 1; i >= 0; i--) {
        if (is_attached(probes, i) && !(ATTACHMENTS[i].levels & levels)) {
            ps_detach_uprobe(&probes->attached[i]);
        }
    }
    if (begun & PS_BPF_COUNTERS) {
        probes->skeleton->bss->counter_epoch++;
    }
    probes->skeleton->bss->levels = probes->levels = levels;
    for (int i = 0; i < PS_N_ATTACHMENTS; i++) {
        if (!is_attached(probes, i) && ATTACHMENTS[i].levels & levels && !attach(probes, i, problem)) {
            return false;
        }
    }
    return true;
}

int ps_probes_program(const ps_probes *probes, int i, char *name, size_t n_bytes) {
    snprintf(name, n_bytes, "%s", ATTACHMENTS[i].program);
    return bpf_program__fd(bpf_object__find_program_by_name(probes->skeleton->obj, ATTACHMENTS[i].program));
}

uint64_t ps_probes_lost(const ps_probes *probes) {
    return __atomic_load_n(&probes->skeleton->bss->lost, __ATOMIC_RELAXED);
}

bool ps_probes_target_left(const ps_probes *probes) {
    return __atomic_load_n(&probes->skeleton->bss->has_left, __ATOMIC_RELAXED);
}

int ps_probes_ring_fd(const ps_probes *probes) { return bpf_map__fd(probes->skeleton->maps.ring); }

int ps_probes_pages_fd(const ps_probes *probes) { return bpf_map__fd(probes->skeleton->maps.pages); }

void ps_probes_close(ps_probes *probes) {
    for (int i = 0; i < PS_N_ATTACHMENTS; i++) {
        ps_detach_uprobe(&probes->attached[i]);
    }
    probes__destroy(probes->skeleton);
    probes->skeleton = NULL;
}

/* ---- on this process itself ------------------------------------------------------------------------------------ */

__attribute__((noinline)) void ps_checked_function(void) { __asm__ volatile("" ::: "memory"); }

static bool check_probe(ps_probes *probes, const ps_function *function, ps_problem *problem) {
    ps_uprobe uprobe = {0};
    last_warning[0] = '\0';
    if (!ps_attach_uprobe(&uprobe, probes->way, probes->skeleton->progs.check_begin, getpid(), function, false)) {
        return fail_to_attach("check_begin", problem);
    }
    ps_checked_function();
    uint64_t n_checked = __atomic_load_n(&probes->skeleton->bss->n_checked, __ATOMIC_RELAXED);
    ps_detach_uprobe(&uprobe);
    return n_checked == 1 || ps_fail(problem, "a probe was hit %" PRIu64 " times instead of once", n_checked);
}

bool ps_probes_check(ps_problem *problem) {
    ps_probes probes;
    ps_options options = {.pid = getpid(), .settings = {.tgid = getpid()}};
    ps_function function = {.name = "ps_checked_function", .library = "perfsuite-bpf", .fd = -1};
    ps_probes_begin(&probes);
    bool works = ps_find_functions(getpid(), &function, 1, problem) && check_function(&function, problem) &&
                 ps_probes_load(&probes, &options, libbpf_num_possible_cpus(), NULL, problem) &&
                 ps_probes_set_levels(&probes, PS_BPF_THREADS, problem) && check_probe(&probes, &function, problem);
    ps_probes_close(&probes);
    return works;
}
