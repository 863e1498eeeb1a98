#define _GNU_SOURCE
#include "session.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LEAST_WAIT_MS = 2, FLOOR_WAIT_MS = 20, OUTPUT_LIMIT_MS = 10000, USER_CHECK_NS = 1000000000,
       PROGRAM_NAME_BYTES = 32 };

typedef enum ps_going { PS_GO_ON = 0, PS_END_TOLD = PS_BPF_ENDED_TOLD, PS_END_TARGET = PS_BPF_ENDED_WITH_TARGET } ps_going;

/* ---- records --------------------------------------------------------------------------------------------------- */

static bool is_new_tid(ps_session *s, uint32_t tid) {
    for (uint32_t i = 0; tid && i < PS_SEEN_TIDS; i++) {
        uint32_t *seen = &s->seen_tids[(tid * 2654435761u + i) % PS_SEEN_TIDS];
        if (*seen == tid) {
            return false;
        }
        if (!*seen) {
            *seen = tid;
            return true;
        }
    }
    return false;
}

static void tell_name(ps_session *s, uint32_t tid) {
    char name[16];
    if (ps_thread_name(&s->target, tid, name)) {
        ps_log_record(&s->out, (ps_bpf_record){.kind = PS_BPF_THREAD_NAME, .tid = tid}, name, sizeof(name));
    }
}

static void tell_levels(ps_session *s, uint16_t why, int64_t ns) {
    ps_bpf_record record = {
        .kind = PS_BPF_LEVELS,
        .ns = ns,
        .subject = s->probes.levels,
        .value = (int64_t)s->floor.milli_tokens_per_s,
        .flags = why,
    };
    ps_log_record(&s->out, record, NULL, 0);
}

static void tell_lost(ps_session *s) {
    uint64_t lost = ps_probes_lost(&s->probes);
    if (lost != s->told_lost) {
        ps_log_record(&s->out, (ps_bpf_record){.kind = PS_BPF_LOST, .subject = lost - s->told_lost}, NULL, 0);
        s->told_lost = lost;
    }
}

static bool take_record(void *context, const ps_bpf_record *record) {
    ps_session *s = context;
    if (is_new_tid(s, record->tid)) {
        tell_name(s, record->tid);
    }
    /* What comes out now may be older than the last decision, or come before one is followed. */
    bool is_settled = s->floor.levels == s->probes.levels && record->ns > s->switched_ns;
    if (record->kind == PS_BPF_TOKEN_BEGIN && is_settled) {
        ps_floor_decode(&s->floor, record->ns, record->value);
    }
    return ps_log_write(&s->out, record, record->bytes);
}

/* ---- levels ---------------------------------------------------------------------------------------------------- */

/* What goes is off from before it is detached; what comes is on from when it is attached. */
static bool switch_levels(ps_session *s, uint32_t levels, uint16_t why, ps_problem *problem) {
    uint32_t staying = s->probes.levels & levels;
    if (staying != s->probes.levels) {
        int64_t before_ns = ps_now_ns();
        if (!ps_probes_set_levels(&s->probes, staying, problem)) {
            return false;
        }
        tell_levels(s, why, before_ns);
    }
    if (levels != staying) {
        if (!ps_probes_set_levels(&s->probes, levels, problem)) {
            return false;
        }
        tell_levels(s, why, ps_now_ns());
    }
    s->switched_ns = ps_now_ns();
    return true;
}

static bool follow_floor(ps_session *s, ps_problem *problem) {
    uint32_t wanted = s->floor.levels;
    if (wanted == s->probes.levels) {
        return true;
    }
    uint16_t why = s->probes.levels & ~wanted ? PS_BPF_LEVELS_BELOW_FLOOR : PS_BPF_LEVELS_RECOVERED;
    return switch_levels(s, wanted, why, problem);
}

/* What cannot be switched to is told, and what was recorded before goes on. */
static void try_to_switch(ps_session *s, uint32_t levels) {
    ps_problem problem = {{0}};
    uint32_t before = s->probes.levels;
    if (levels & PS_BPF_COUNTERS && !s->options->n_counters) {
        levels &= ~(uint32_t)PS_BPF_COUNTERS;
    }
    if (levels & (PS_BPF_STRUCTURE | PS_BPF_EXPERTS) && !s->options->settings.tensor_bytes) {
        ps_fail(&problem, "structure and experts need the tensor's layout from the start");
    } else if (switch_levels(s, levels, PS_BPF_LEVELS_TOLD, &problem)) {
        ps_floor_ask(&s->floor, levels);
        return;
    }
    fprintf(stderr, "note: levels %u: %s\n", levels, problem.text);
    switch_levels(s, before, PS_BPF_LEVELS_TOLD, &problem);
    ps_floor_ask(&s->floor, s->probes.levels);
}

static void switch_as_told(ps_session *s, uint32_t levels) {
    try_to_switch(s, levels);
    fprintf(stderr, "levels %u\n", s->probes.levels);
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void follow_command(ps_session *s, const char *line) {
    static const char LEVELS[] = "levels ";
    uint64_t levels = 0;
    if (strncmp(line, LEVELS, strlen(LEVELS)) == 0 && ps_parse_number(line + strlen(LEVELS), 0, 0xff, &levels)) {
        switch_as_told(s, (uint32_t)levels);
    } else {
        fprintf(stderr, "note: a command that is none was passed over; 'levels N' is the only one\n");
    }
}

/* False at the end of the file. */
static bool read_commands(ps_session *s) {
    char text[256];
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] != '\n') {
            s->command[s->n_command] = text[i];
            s->n_command += s->n_command < PS_COMMAND_BYTES - 1;
            continue;
        }
        s->command[s->n_command] = '\0';
        s->n_command = 0;
        follow_command(s, s->command);
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

/* ---- from beginning to end ------------------------------------------------------------------------------------- */

static void write_header(ps_session *s) {
    ps_bpf_header header = {
        .version = PS_BPF_VERSION,
        .header_bytes = sizeof(header),
        .start_ns = ps_now_ns(),
        .pid = s->target.pid,
        .levels = s->probes.levels,
        .buffer = s->options->settings.buffer,
        .tensor_bytes = s->options->settings.tensor_bytes,
        .n_cpus = (uint32_t)libbpf_num_possible_cpus(),
        .n_counters = s->options->n_counters,
    };
    memcpy(header.magic, PS_BPF_MAGIC, sizeof(header.magic));
    for (uint32_t i = 0; i < s->options->n_counters; i++) {
        memcpy(header.counters[i], s->options->counters[i].name, sizeof(header.counters[i]));
    }
    ps_log_write(&s->out, &header, sizeof(header));
}

static bool begin(ps_session *s, ps_problem *problem) {
    uint32_t levels = s->options->levels & (s->options->n_counters ? ~0u : ~(uint32_t)PS_BPF_COUNTERS);
    ps_floor_begin(&s->floor, s->options->floor_milli_tokens_per_s, levels);
    if (!ps_buffers_open(&s->buffers, s->options, &s->probes, take_record, s, problem) ||
        !ps_probes_set_levels(&s->probes, levels, problem)) {
        return false;
    }
    /* The number may have gone to another process while the probes were attached, or the process to another user's
     * program; nothing of that is written. */
    if (!ps_check_user(&s->target, problem)) {
        return false;
    }
    if (!ps_is_alive(&s->target)) {
        return ps_fail(problem, "process %d: ended before it could be recorded", s->target.pid);
    }
    ps_log_open(&s->out, STDOUT_FILENO, OUTPUT_LIMIT_MS);
    write_header(s);
    return ps_log_flush(&s->out) || ps_fail(problem, "the log cannot be written (%s)", strerror(s->out.error));
}

static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static ps_going wait_for_news(ps_session *s, int signals, int timeout_ms) {
    struct pollfd watched[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = s->target.pidfd, .events = POLLIN},
        {.fd = signals, .events = POLLIN},
    };
    if (poll(watched, 3, timeout_ms) <= 0) {
        return PS_GO_ON;
    }
    if (watched[2].revents || (watched[0].revents && !read_commands(s))) {
        return PS_END_TOLD;
    }
    return watched[1].revents ? PS_END_TARGET : PS_GO_ON;
}

static void follow_exec(ps_session *s, ps_going *going) {
    if (ps_probes_target_left(&s->probes)) {
        fprintf(stderr, "note: process %d has executed another program; the recording ends there\n", s->target.pid);
        *going = PS_END_TARGET;
    }
}

/* The process may have become another user's without executing anything. */
static bool check_user_again(ps_session *s, ps_problem *problem) {
    if (ps_probes_target_left(&s->probes) || ps_now_ns() - s->checked_user_ns < USER_CHECK_NS) {
        return true;
    }
    s->checked_user_ns = ps_now_ns();
    return !ps_is_alive(&s->target) || ps_check_user(&s->target, problem) || !ps_is_alive(&s->target);
}

static bool drain(ps_session *s, bool is_last, ps_problem *problem) {
    bool is_drained = ps_buffers_drain(&s->buffers, is_last);
    tell_lost(s);
    return (ps_log_flush(&s->out) && is_drained) ||
           ps_fail(problem, "the log cannot be written (%s)", strerror(s->out.error ? s->out.error : ENOMEM));
}

/* How long to leave the recorded threads alone: each look at the buffer takes a processor from them, so that it is seldom,
 * but often enough for a floor, and before a quarter of the buffer fills at the pace of the time before. */
static int next_wait_ms(const ps_session *s, int last_ms) {
    int most_ms = (int)s->options->drain_ms;
    if (s->options->floor_milli_tokens_per_s && most_ms > FLOOR_WAIT_MS) {
        most_ms = FLOOR_WAIT_MS;
    }
    if (!s->buffers.drained_bytes) {
        return most_ms;
    }
    uint64_t fits_ms = s->buffers.capacity_bytes / 4 * (uint64_t)last_ms / s->buffers.drained_bytes;
    return fits_ms >= (uint64_t)most_ms ? most_ms : fits_ms < LEAST_WAIT_MS ? LEAST_WAIT_MS : (int)fits_ms;
}

static bool record(ps_session *s, int signals, ps_going *going, ps_problem *problem) {
    int wait_ms = FLOOR_WAIT_MS;
    while (*going == PS_GO_ON) {
        *going = wait_for_news(s, signals, wait_ms);
        follow_exec(s, going);
        if (!check_user_again(s, problem) || !drain(s, false, problem) || !follow_floor(s, problem)) {
            return false;
        }
        wait_ms = next_wait_ms(s, wait_ms);
    }
    return true;
}

/* What the kernel says that its programs cost: a PROBE record for each. */
static void tell_run_statistics(ps_session *s) {
    for (int i = 0; i < PS_N_ATTACHMENTS; i++) {
        struct {
            uint64_t n_runs;
            char name[PROGRAM_NAME_BYTES];
        } content = {0};
        struct bpf_prog_info info = {0};
        uint32_t info_bytes = sizeof(info);
        int fd = ps_probes_program(&s->probes, i, content.name, sizeof(content.name));
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &info_bytes) == 0) {
            content.n_runs = info.run_cnt;
            ps_bpf_record record = {.kind = PS_BPF_PROBE, .subject = info.run_time_ns};
            ps_log_record(&s->out, record, &content, sizeof(content));
        }
    }
}

static bool end(ps_session *s, ps_going going, ps_problem *problem) {
    ps_problem ignored;
    ps_probes_set_levels(&s->probes, 0, &ignored);
    if (!drain(s, true, problem)) {
        return false;
    }
    tell_run_statistics(s);
    ps_bpf_record record = {.kind = PS_BPF_END, .subject = s->told_lost, .value = going};
    ps_log_record(&s->out, record, NULL, 0);
    return ps_log_flush(&s->out) || ps_fail(problem, "the log cannot be written (%s)", strerror(s->out.error));
}

bool ps_session_run(ps_session *s, ps_problem *problem) {
    int signals = open_signals();
    ps_going going = PS_GO_ON;
    bool works = begin(s, problem);
    if (works) {
        fprintf(stderr, "ready\n");
        works = record(s, signals, &going, problem) && end(s, going, problem);
    }
    ps_buffers_close(&s->buffers);
    ps_probes_close(&s->probes);
    return works;
}
