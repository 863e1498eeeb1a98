#include "probe_timing.h"

#include <stdlib.h>

#include "perfsuite/clock.h"

void ps_schedule_open(ps_schedule *schedule, int64_t begin_ns, int64_t budget_ns) {
    schedule->deadline_ns = begin_ns + budget_ns;
    schedule->wanted_ns = budget_ns / 32 < PS_NS_PER_MS ? budget_ns / 32 : PS_NS_PER_MS;
    schedule->passes = 1;
    schedule->n_seen = 0;
    schedule->n_kept = 0;
    schedule->done = false;
}

static void ps_schedule_keep(ps_schedule *schedule, int64_t duration_ns) {
    double passes = (double)schedule->passes;
    schedule->pass_ns[schedule->n_kept++] = (double)(duration_ns > 0 ? duration_ns : 1) / passes;
}

void ps_schedule_add(ps_schedule *schedule, int64_t duration_ns, int64_t now_ns) {
    bool is_late = now_ns + duration_ns > schedule->deadline_ns;
    bool is_short = duration_ns < schedule->wanted_ns;
    bool is_first = schedule->n_seen++ == 0;
    if ((!is_first && !is_short) || (is_late && schedule->n_kept == 0)) {
        ps_schedule_keep(schedule, duration_ns);
    } else if (is_short) {
        schedule->passes *= duration_ns < schedule->wanted_ns / 16 ? 8 : 2;
    }
    schedule->done = is_late || schedule->n_kept == PS_MAX_REPETITIONS;
}

static int ps_by_size(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

ps_pass_times ps_schedule_close(ps_schedule *schedule) {
    int64_t n = schedule->n_kept;
    if (n == 0) {
        return (ps_pass_times){0};
    }
    qsort(schedule->pass_ns, (size_t)n, sizeof schedule->pass_ns[0], ps_by_size);
    double median_ns = (schedule->pass_ns[(n - 1) / 2] + schedule->pass_ns[n / 2]) / 2;
    return (ps_pass_times){.best_ns = schedule->pass_ns[0], .median_ns = median_ns, .repetitions = n};
}

int ps_check_setup(const ps_probe_setup *setup) {
    bool is_good = setup != NULL && setup->n_threads >= 1 && setup->n_threads <= PS_MAX_THREADS &&
                   setup->budget_ms >= 1 && setup->budget_ms <= PS_MAX_BUDGET_MS;
    return is_good ? PS_OK : PS_BAD_ARGUMENT;
}

/* When a thread began and ended its share; one cache line each. */
typedef struct ps_stamps {
    int64_t start_ns;
    int64_t end_ns;
    char gap[PS_CACHE_LINE - 2 * sizeof(int64_t)];
} ps_stamps;

typedef struct ps_trial {
    ps_work work;
    void *context;
    ps_stamps *stamps;
    ps_schedule *schedule;
} ps_trial;

static void ps_decide(ps_trial *trial, int n_threads) {
    int64_t start_ns = INT64_MAX;
    int64_t end_ns = INT64_MIN;
    for (int i = 0; i < n_threads; i++) {
        start_ns = trial->stamps[i].start_ns < start_ns ? trial->stamps[i].start_ns : start_ns;
        end_ns = trial->stamps[i].end_ns > end_ns ? trial->stamps[i].end_ns : end_ns;
    }
    ps_schedule_add(trial->schedule, end_ns - start_ns, ps_now_ns());
}

static int ps_repeat(const ps_member *member, ps_trial *trial) {
    int status = ps_barrier_wait(member->barrier);
    if (status != PS_OK) {
        return status;
    }
    ps_stamps *stamps = &trial->stamps[member->thread];
    stamps->start_ns = ps_now_ns();
    status = trial->work(member, trial->context, trial->schedule->passes);
    stamps->end_ns = ps_now_ns();
    return status != PS_OK ? status : ps_barrier_wait(member->barrier);
}

/* The schedule is written by the first thread alone, between the barrier that ends a repetition and the next one. */
static int ps_try(const ps_member *member, void *context) {
    ps_trial *trial = context;
    int status = PS_OK;
    bool done = false;
    while (status == PS_OK && !done) {
        status = ps_repeat(member, trial);
        if (status == PS_OK && member->thread == 0) {
            ps_decide(trial, member->n_threads);
        }
        if (status == PS_OK) {
            status = ps_barrier_wait(member->barrier);
            done = trial->schedule->done;
        }
    }
    return status;
}

int ps_time_passes(const ps_probe_setup *setup, int64_t budget_ns, ps_work work, void *context, ps_pass_times *out) {
    ps_schedule schedule;
    ps_schedule_open(&schedule, ps_now_ns(), budget_ns);
    ps_stamps *stamps = calloc((size_t)setup->n_threads, sizeof *stamps);
    if (stamps == NULL) {
        return PS_NO_MEMORY;
    }
    ps_trial trial = {.work = work, .context = context, .stamps = stamps, .schedule = &schedule};
    int status = ps_team_run(setup->n_threads, setup->pinned, ps_try, &trial);
    if (status == PS_OK) {
        *out = ps_schedule_close(&schedule);
    }
    free(stamps);
    return status;
}

ps_rate ps_rate_of(double amount, const ps_pass_times *times) {
    return (ps_rate){
        .best_per_s = amount * 1e9 / times->best_ns,
        .median_per_s = amount * 1e9 / times->median_ns,
        .repetitions = times->repetitions,
    };
}
