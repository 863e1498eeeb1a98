/* Kernel duplication (perfsuite/cl_layer.h): the same launch again and again, on the thread and queue that made it.
 *
 * Nothing else may use the kernel's buffers meanwhile: another queue of the program that does so would see them change.
 */
#define _GNU_SOURCE
#include "duplicate.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perfsuite/cl_layer.h"
#include "copies.h"
#include "drain.h"
#include "log_writer.h"

#ifndef PS_CL_REST_LIMIT_NS /* the tests cannot wait for so long */
#define PS_CL_REST_LIMIT_NS INT64_C(20000000000)
#endif
#define ROOM_LIMIT_NS INT64_C(1000000000)

enum { MOST_DUPLICATES = 1000000, MOST_ROUNDS = 100000 };

typedef enum stage { STAGE_IDLE, STAGE_ARMED, STAGE_RUNNING, STAGE_DONE, STAGE_FAILED } stage;

atomic_bool ps_cl_duplication_armed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stage now; /* under the lock, as are all of these */
static ps_cl_duplication plan;
static ps_cl_round *measured;
static char reason[256];

struct ps_cl_duplicating {
    ps_cl_duplication plan;
    ps_cl_copies *copies;
    ps_cl_round *rounds;
    cl_event *events; /* of one batch */
    ps_cl_command *commands;
    char error[256];
};

/* ---- asking for it ---------------------------------------------------------------------------------------------- */

static bool is_sound(const ps_cl_duplication *asked) {
    return asked && asked->name[0] && memchr(asked->name, '\0', sizeof(asked->name)) && asked->skip >= 0 &&
           asked->n_duplicates >= 1 && asked->n_duplicates <= MOST_DUPLICATES && asked->n_rounds >= 1 &&
           asked->n_rounds <= MOST_ROUNDS;
}

/* A launch that never came must not keep the next one out. */
static bool disarm(void) {
    pthread_mutex_lock(&lock);
    bool was_armed = now == STAGE_ARMED;
    if (was_armed) {
        now = STAGE_IDLE;
        atomic_store(&ps_cl_duplication_armed, false);
    }
    pthread_mutex_unlock(&lock);
    return was_armed;
}

__attribute__((visibility("default"))) bool ps_cl_duplicate(const ps_cl_duplication *asked) {
    if (!asked) {
        return disarm();
    }
    if (!is_sound(asked) || atomic_load(&ps_cl_gate) & (PS_CL_GATE_OFF | PS_CL_GATE_PROFILE_ONLY)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    bool is_free = now == STAGE_IDLE;
    if (is_free) {
        plan = *asked;
        now = STAGE_ARMED;
        atomic_store(&ps_cl_duplication_armed, true);
    }
    pthread_mutex_unlock(&lock);
    return is_free;
}

__attribute__((visibility("default"))) int32_t ps_cl_duplication_rounds(ps_cl_round *rounds, int32_t capacity,
                                                                        char *error, size_t error_bytes) {
    if (ps_cl_is_off()) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    int32_t n = 0;
    if (now == STAGE_FAILED) {
        n = -1;
        if (error && error_bytes) {
            snprintf(error, error_bytes, "%s", reason);
        }
    } else if (now == STAGE_DONE) {
        n = plan.n_rounds < capacity ? plan.n_rounds : capacity;
        memcpy(rounds, measured, (size_t)(n > 0 ? n : 0) * sizeof(*rounds));
    }
    if (n != 0) {
        free(measured);
        measured = NULL;
        now = STAGE_IDLE;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

/* Whether this launch is the one; then nobody else's is. */
static bool claim(const ps_cl_kernel_state *kernel, ps_cl_duplication *taken) {
    const char *name = ps_cl_log_name_of(kernel->name);
    pthread_mutex_lock(&lock);
    bool is_named = now == STAGE_ARMED && strcmp(name, plan.name) == 0;
    bool is_it = is_named && plan.skip-- == 0;
    if (is_it) {
        now = STAGE_RUNNING;
        *taken = plan;
        atomic_store(&ps_cl_duplication_armed, false);
    }
    pthread_mutex_unlock(&lock);
    return is_it;
}

/* Ends it: with rounds, or with the reason why there are none. */
static void conclude(ps_cl_duplicating *d, bool is_done) {
    pthread_mutex_lock(&lock);
    now = is_done ? STAGE_DONE : STAGE_FAILED;
    measured = is_done ? d->rounds : NULL;
    snprintf(reason, sizeof(reason), "%s", d->error);
    pthread_mutex_unlock(&lock);
    if (!is_done) {
        free(d->rounds);
    }
    if (d->copies) {
        ps_cl_copies_free(d->copies);
    }
    free(d->events);
    free(d->commands);
    free(d);
}

/* ---- before the launch ------------------------------------------------------------------------------------------ */

static bool comes_to_rest(cl_event event, int64_t until_ns) {
    cl_int status = CL_QUEUED;
    for (;;) {
        ps_cl_below.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
        if (status <= CL_COMPLETE || ps_now_ns() > until_ns) {
            return status <= CL_COMPLETE;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

/* Waits without clFinish, which would never return where the program has yet to set a user event. */
static bool is_at_rest(const ps_cl_launch *launch) {
    int64_t until_ns = ps_now_ns() + PS_CL_REST_LIMIT_NS;
    cl_event marker = NULL;
    if (!ps_cl_below.clEnqueueMarkerWithWaitList ||
        ps_cl_below.clEnqueueMarkerWithWaitList(launch->queue, 0, NULL, &marker) != CL_SUCCESS) {
        return false;
    }
    ps_cl_below.clFlush(launch->queue);
    bool is_resting = comes_to_rest(marker, until_ns);
    ps_cl_below.clReleaseEvent(marker);
    for (cl_uint i = 0; is_resting && i < launch->n_waits && launch->waits; i++) {
        is_resting = comes_to_rest(launch->waits[i], until_ns);
    }
    return is_resting;
}

static const char *obstacle(const ps_cl_launch *launch, const ps_cl_queue_state *queue,
                            const ps_cl_kernel_state *kernel) {
    cl_uint n_arguments = 0;
    ps_cl_below.clGetKernelInfo(launch->kernel, CL_KERNEL_NUM_ARGS, sizeof(n_arguments), &n_arguments, NULL);
    if (!queue || queue->is_out_of_order) {
        return "the launch is on an out-of-order queue";
    }
    if (!queue->is_profiled) {
        return "the driver refused profiling on the queue";
    }
    if (kernel->is_stranger || n_arguments > PS_CL_MAX_ARGUMENTS) {
        return "the kernel's arguments are not known";
    }
    if (kernel->uses_svm) {
        return "the kernel uses shared virtual memory, which cannot be copied";
    }
    return is_at_rest(launch) ? NULL : "the queue, or an event that the launch waits for, does not come to rest";
}

static bool make_space(ps_cl_duplicating *d) {
    size_t n = (size_t)d->plan.n_duplicates + 1;
    d->rounds = (ps_cl_round *)calloc((size_t)d->plan.n_rounds, sizeof(*d->rounds));
    d->events = (cl_event *)calloc(n, sizeof(*d->events));
    d->commands = (ps_cl_command *)calloc(n, sizeof(*d->commands));
    return d->rounds && d->events && d->commands;
}

ps_cl_duplicating *ps_cl_duplication_begin(const ps_cl_launch *launch) {
    const ps_cl_kernel_state *kernel = ps_cl_kernel_of(launch->kernel);
    ps_cl_duplication taken;
    if (!kernel || !claim(kernel, &taken)) {
        return NULL;
    }
    ps_cl_duplicating *d = (ps_cl_duplicating *)calloc(1, sizeof(*d));
    if (!d) {
        pthread_mutex_lock(&lock);
        now = STAGE_FAILED;
        snprintf(reason, sizeof(reason), "no memory");
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    d->plan = taken;
    const char *why = make_space(d) ? obstacle(launch, ps_cl_queue_of(launch->queue), kernel) : "no memory";
    if (why) {
        snprintf(d->error, sizeof(d->error), "%s", why);
    } else {
        d->copies = ps_cl_copies_take(launch->queue, kernel, d->error, sizeof(d->error));
    }
    if (!d->copies) {
        conclude(d, false);
        return NULL;
    }
    return d;
}

/* ---- after it --------------------------------------------------------------------------------------------------- */

static int64_t time_of(cl_event event, cl_profiling_info name) {
    cl_ulong value = 0;
    ps_cl_below.clGetEventProfilingInfo(event, name, sizeof(value), &value, NULL);
    return (int64_t)value;
}

static void push(const ps_cl_command *command, ps_cl_queue_state *queue) {
    ps_cl_thread *thread = ps_cl_this_thread();
    int64_t until_ns = ps_now_ns() + ROOM_LIMIT_NS;
    ps_cl_entry *entry = thread ? ps_cl_ring_slot(thread) : NULL;
    while (thread && !entry && ps_now_ns() < until_ns) {
        ps_cl_drain_kick();
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        entry = ps_cl_ring_slot(thread);
    }
    if (entry) {
        *entry = (ps_cl_entry){.command = *command, .queue = queue};
        ps_cl_ring_publish(thread);
    }
}

static bool enqueue(ps_cl_duplicating *d, const ps_cl_launch *l, int i) {
    ps_cl_command *command = &d->commands[i];
    command->host_start_ns = ps_now_ns();
    cl_int status = ps_cl_below.clEnqueueNDRangeKernel(l->queue, l->kernel, l->work_dim, l->offset, l->global, l->local,
                                                       0, NULL, &d->events[i]);
    command->host_end_ns = ps_now_ns();
    if (status != CL_SUCCESS) {
        snprintf(d->error, sizeof(d->error), "the driver refused a duplicate (OpenCL error %d)", status);
    }
    return status == CL_SUCCESS;
}

/* Reads the times of `n` launches and records them; the sum of END - START, or -1 where the driver gave none. */
static int64_t collect(ps_cl_duplicating *d, const ps_cl_entry *original, int n) {
    int64_t sum_ns = 0;
    for (int i = 0; i < n; i++) {
        ps_cl_command command = original->command;
        command.flags = PS_CL_REPLAYED;
        command.host_start_ns = d->commands[i].host_start_ns;
        command.host_end_ns = d->commands[i].host_end_ns;
        command.queued_ns = time_of(d->events[i], CL_PROFILING_COMMAND_QUEUED);
        command.submit_ns = time_of(d->events[i], CL_PROFILING_COMMAND_SUBMIT);
        command.start_ns = time_of(d->events[i], CL_PROFILING_COMMAND_START);
        command.end_ns = time_of(d->events[i], CL_PROFILING_COMMAND_END);
        push(&command, original->queue);
        sum_ns = command.end_ns && sum_ns >= 0 ? sum_ns + command.end_ns - command.start_ns : -1;
    }
    return sum_ns;
}

static void drop_events(ps_cl_duplicating *d, int n) {
    for (int i = 0; i < n; i++) {
        if (d->events[i]) {
            ps_cl_below.clReleaseEvent(d->events[i]);
            d->events[i] = NULL;
        }
    }
}

/* `n` launches between two clFinish, after restoring the buffers. */
static bool run_batch(ps_cl_duplicating *d, const ps_cl_launch *launch, const ps_cl_entry *original, int n,
                      int64_t *host_ns, int64_t *execution_ns, int64_t *occupied_ns) {
    bool is_good = ps_cl_copies_restore(d->copies, false, d->error, sizeof(d->error));
    ps_cl_below.clFinish(launch->queue);
    int64_t begin_ns = ps_now_ns();
    for (int i = 0; is_good && i < n; i++) {
        is_good = enqueue(d, launch, i);
    }
    cl_int status = ps_cl_below.clFinish(launch->queue);
    *host_ns = ps_now_ns() - begin_ns;
    if (is_good && status != CL_SUCCESS) {
        snprintf(d->error, sizeof(d->error), "clFinish failed after the duplicates (OpenCL error %d)", status);
        is_good = false;
    }
    if (is_good) {
        *execution_ns = collect(d, original, n);
        *occupied_ns = time_of(d->events[n - 1], CL_PROFILING_COMMAND_END) -
                       time_of(d->events[0], CL_PROFILING_COMMAND_END);
        is_good = *execution_ns >= 0;
        snprintf(d->error, sizeof(d->error), "%s", is_good ? "" : "the driver gave no times for the duplicates");
    }
    drop_events(d, n);
    return is_good;
}

static bool run_rounds(ps_cl_duplicating *d, const ps_cl_launch *launch, const ps_cl_entry *original) {
    int64_t no_gap_ns = 0;
    for (int32_t i = 0; i < d->plan.n_rounds; i++) {
        ps_cl_round *round = &d->rounds[i];
        if (!run_batch(d, launch, original, 1, &round->base_ns, &round->base_execution_ns, &no_gap_ns) ||
            !run_batch(d, launch, original, d->plan.n_duplicates + 1, &round->duplicated_ns,
                       &round->duplicates_execution_ns, &round->duplicates_occupied_ns)) {
            return false;
        }
    }
    return true;
}

void ps_cl_duplication_run(ps_cl_duplicating *d, const ps_cl_launch *launch, cl_int status,
                           const ps_cl_entry *original) {
    if (status != CL_SUCCESS || !original->queue) {
        snprintf(d->error, sizeof(d->error), "%s",
                 status != CL_SUCCESS ? "the driver refused the launch itself" : "the launch itself was lost");
        conclude(d, false);
        return;
    }
    ps_cl_below.clFinish(launch->queue);
    bool is_done = ps_cl_copies_take_after(d->copies, d->error, sizeof(d->error));
    if (is_done) {
        is_done = run_rounds(d, launch, original);
        char trouble[sizeof(d->error)];
        if (!ps_cl_copies_restore(d->copies, true, trouble, sizeof(trouble))) {
            ps_cl_say("after duplicating %s, %s: the program's results are wrong", d->plan.name, trouble);
            memcpy(d->error, trouble, sizeof(trouble));
            is_done = false;
        }
        ps_cl_below.clFinish(launch->queue);
    }
    conclude(d, is_done);
}
