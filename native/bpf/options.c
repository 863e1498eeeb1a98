#include "options.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL_LEVELS = 0xff, NE_BYTES = 32, MAX_PID = 1 << 22 };

/* What an unprivileged user's pages for one processor may take with perf_event_mlock_kb as it usually is. */
enum { DEFAULT_PAGES_BYTES = 512 << 10, DEFAULT_RING_BYTES = 16 << 20 };

/* Where an option's number goes, and its range. */
typedef struct option_of {
    const char *name;
    uint64_t least, most;
    uint64_t value;
} option_of;

enum {
    OPTION_PID,
    OPTION_LEVELS,
    OPTION_BUFFER_BYTES,
    OPTION_DRAIN_MS,
    OPTION_FLOOR,
    OPTION_TENSOR_BYTES,
    OPTION_NE_AT,
    OPTION_NB_AT,
    OPTION_OP_AT,
    OPTION_SRC_AT,
    OPTION_N_SRC,
    OPTION_DATA_AT,
    OPTION_EXPERT_OP,
    N_OPTIONS,
};

static const option_of ALL[N_OPTIONS] = {
    {"--pid", 1, MAX_PID, 0},
    {"--levels", 0, ALL_LEVELS, PS_BPF_TOKEN},
    {"--buffer-bytes", 4096, 1 << 30, 0},
    {"--drain-ms", 1, 1000, 200},
    {"--floor-milli-tokens-per-s", 0, 1000000000, 0},
    {"--tensor-bytes", 64, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--ne-at", 0, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--nb-at", 0, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--op-at", 0, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--src-at", 0, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--n-src", 3, PS_BPF_MAX_SOURCE_SLOTS, 0},
    {"--data-at", 0, PS_BPF_MAX_TENSOR_BYTES, 0},
    {"--expert-op", 0, 0xfffffffe, 0xffffffff},
};

bool ps_parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *number) {
    char *end = NULL;
    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    if (errno || *end || parsed < least || parsed > most) {
        return false;
    }
    *number = parsed;
    return true;
}

/* NAME:TYPE:CONFIG; no tracepoints and breakpoints, which can be attached to anything. */
static bool parse_counter(char *text, ps_options *options, ps_problem *problem) {
    char *type = strchr(text, ':'), *config = type ? strchr(type + 1, ':') : NULL;
    uint64_t type_number = 0, config_number = 0;
    if (!config || type == text || type - text >= PS_BPF_COUNTER_NAME_BYTES) {
        return ps_fail(problem, "--counter %s: NAME:TYPE:CONFIG is expected, NAME shorter than %d bytes", text,
                       PS_BPF_COUNTER_NAME_BYTES);
    }
    *type = *config = '\0';
    if (!ps_parse_number(type + 1, 0, PERF_TYPE_RAW, &type_number) || type_number == PERF_TYPE_TRACEPOINT ||
        !ps_parse_number(config + 1, 0, UINT64_MAX, &config_number)) {
        return ps_fail(problem, "--counter %s: type %s, configuration %s; types 0, 1, 3 and 4 are accepted", text,
                       type + 1, config + 1);
    }
    if (options->n_counters == PS_BPF_MAX_COUNTERS) {
        return ps_fail(problem, "--counter %s: more than %d counters", text, PS_BPF_MAX_COUNTERS);
    }
    ps_counter_option *counter = &options->counters[options->n_counters++];
    memcpy(counter->name, text, strlen(text));
    counter->type = (uint32_t)type_number;
    counter->config = config_number;
    return true;
}

static bool parse_valued(const char *name, char *value, option_of *numbers, ps_options *options, ps_problem *problem) {
    if (strcmp(name, "--counter") == 0) {
        return parse_counter(value, options, problem);
    }
    if (strcmp(name, "--buffer") == 0) {
        options->settings.buffer = strcmp(value, "perf") == 0 ? PS_BPF_PERF : PS_BPF_RING;
        return strcmp(value, "perf") == 0 || strcmp(value, "ring") == 0 ||
               ps_fail(problem, "--buffer %s: ring or perf is expected", value);
    }
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            return ps_parse_number(value, numbers[i].least, numbers[i].most, &numbers[i].value) ||
                   ps_fail(problem, "%s %s: a number from %llu to %llu is expected", name, value,
                           (unsigned long long)numbers[i].least, (unsigned long long)numbers[i].most);
        }
    }
    return ps_fail(problem, "%s: no such option", name);
}

static bool lies_within(const ps_bpf_settings *s, uint32_t at, uint32_t n_bytes, uint32_t alignment) {
    return at % alignment == 0 && at + n_bytes <= s->tensor_bytes;
}

static bool check_layout(const ps_options *options, ps_problem *problem) {
    const ps_bpf_settings *s = &options->settings;
    if (!(options->levels & (PS_BPF_STRUCTURE | PS_BPF_EXPERTS)) && !s->tensor_bytes) {
        return true;
    }
    bool fits = s->tensor_bytes % 8 == 0 && s->n_src && lies_within(s, s->ne_at, NE_BYTES, 8) &&
                lies_within(s, s->nb_at, NE_BYTES, 8) && lies_within(s, s->op_at, 4, 4) &&
                lies_within(s, s->src_at, s->n_src * 8, 8) && lies_within(s, s->data_at, 8, 8);
    return fits || ps_fail(problem, "--tensor-bytes %u: its fields do not lie in it, or are not aligned; all of "
                                    "--ne-at, --nb-at, --op-at, --src-at, --n-src, --data-at are needed",
                           s->tensor_bytes);
}

static bool keep(const option_of *numbers, ps_options *options, ps_problem *problem) {
    options->pid = (int32_t)numbers[OPTION_PID].value;
    options->levels = (uint32_t)numbers[OPTION_LEVELS].value;
    options->buffer_bytes = numbers[OPTION_BUFFER_BYTES].value;
    options->drain_ms = (uint32_t)numbers[OPTION_DRAIN_MS].value;
    options->floor_milli_tokens_per_s = numbers[OPTION_FLOOR].value;
    ps_bpf_settings *s = &options->settings;
    s->tensor_bytes = (uint32_t)numbers[OPTION_TENSOR_BYTES].value;
    s->ne_at = (uint32_t)numbers[OPTION_NE_AT].value;
    s->nb_at = (uint32_t)numbers[OPTION_NB_AT].value;
    s->op_at = (uint32_t)numbers[OPTION_OP_AT].value;
    s->src_at = (uint32_t)numbers[OPTION_SRC_AT].value;
    s->n_src = (uint32_t)numbers[OPTION_N_SRC].value;
    s->data_at = (uint32_t)numbers[OPTION_DATA_AT].value;
    s->expert_op = (uint32_t)numbers[OPTION_EXPERT_OP].value;
    s->tgid = options->pid;
    if (options->action == PS_RECORD && !options->pid) {
        return ps_fail(problem, "--pid: the process to record is needed");
    }
    return check_layout(options, problem);
}

uint64_t ps_buffer_bytes(const ps_options *options) {
    uint64_t usual = options->settings.buffer == PS_BPF_RING ? DEFAULT_RING_BYTES : DEFAULT_PAGES_BYTES;
    uint64_t wanted = options->buffer_bytes ? options->buffer_bytes : usual, bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    while (bytes < wanted) {
        bytes *= 2;
    }
    return bytes;
}

bool ps_parse_options(int argc, char **argv, ps_options *options, ps_problem *problem) {
    option_of numbers[N_OPTIONS];
    memcpy(numbers, ALL, sizeof(numbers));
    memset(options, 0, sizeof(*options));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            options->action = PS_VERSION;
        } else if (strcmp(argv[i], "--check") == 0) {
            options->action = PS_CHECK;
        } else if (strcmp(argv[i], "--statistics") == 0) {
            options->with_statistics = true;
        } else if (i + 1 == argc) {
            return ps_fail(problem, "%s: no such option, or it lacks its value", argv[i]);
        } else if (!parse_valued(argv[i], argv[i + 1], numbers, options, problem)) {
            return false;
        } else {
            i++;
        }
    }
    return keep(numbers, options, problem);
}
