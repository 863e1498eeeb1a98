/* The life of the process: the log is opened with the first queue, closed at exit, and never a child's of fork.
 *
 * A child of fork whose parent had no queue yet begins a log of its own with its first one.  A child of a parent that
 * had queues cannot use them (the driver's threads are not there), and records nothing.  exec and _exit end the log
 * without a PS_CL_END.
 */
#define _GNU_SOURCE
#include "process.h"

#include <stdlib.h>
#include <unistd.h>

#include "device_clock.h"
#include "drain.h"
#include "log_writer.h"
#include "objects.h"

#define EXIT_LIMIT_NS INT64_C(6000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_started; /* the drain runs in this process */
static _Atomic pid_t owner; /* of the log */
static bool is_watched;

static void turn_off(void) {
    atomic_fetch_or(&ps_cl_gate, PS_CL_GATE_OFF);
}

static void end_of_process(void) {
    if (getpid() != owner || ps_cl_is_off()) {
        return;
    }
    bool is_recording = is_started;
    turn_off();
    if (is_recording) {
        ps_cl_drain_stop(EXIT_LIMIT_NS);
    } else if (!(atomic_load(&ps_cl_gate) & PS_CL_GATE_PROFILE_ONLY)) {
        ps_cl_log_close(&(ps_cl_end){.n_commands = 0});
    }
}

/* No lock may be held by a thread that the child lacks. While the drain runs it does not matter: the child is off. */
static pthread_mutex_t *const held_by_fork[] = {&lock, &ps_cl_device_lock, &ps_cl_contexts.lock, &ps_cl_memories.lock,
                                                &ps_cl_kernels.lock, &ps_cl_log_lock};
enum { N_HELD = sizeof(held_by_fork) / sizeof(*held_by_fork) };
static bool is_held; /* under the lock */

static void before_fork(void) {
    pthread_mutex_lock(&lock);
    is_held = !is_started;
    for (int i = 1; is_held && i < N_HELD; i++) {
        pthread_mutex_lock(held_by_fork[i]);
    }
}

static void after_fork(void) {
    for (int i = N_HELD - 1; is_held && i > 0; i--) {
        pthread_mutex_unlock(held_by_fork[i]);
    }
    pthread_mutex_unlock(&lock);
}

static void child_of_fork(void) {
    if (is_started) {
        turn_off();
    }
    after_fork();
}

/* Registered again after the first queue: handlers run in the reverse order, and the driver's would end its threads. */
void ps_cl_process_watch_end(void) {
    pthread_mutex_lock(&lock);
    if (!is_watched) {
        is_watched = true;
        atexit(end_of_process);
    }
    pthread_mutex_unlock(&lock);
}

bool ps_cl_process_is_owner(void) {
    return getpid() == owner;
}

/* Under the lock. */
static bool start(void) {
    if (atomic_load(&ps_cl_gate) & PS_CL_GATE_PROFILE_ONLY) {
        return true;
    }
    if (getpid() != owner) {
        owner = getpid();
        if (!ps_cl_log_open()) {
            return false;
        }
    }
    is_started = is_started || ps_cl_drain_start();
    return is_started;
}

bool ps_cl_process_ready(void) {
    pthread_mutex_lock(&lock);
    bool is_ready = !ps_cl_is_off() && start();
    if (!is_ready) {
        turn_off();
    }
    pthread_mutex_unlock(&lock);
    return is_ready;
}

void ps_cl_process_init(void) {
    owner = getpid();
    pthread_atfork(before_fork, after_fork, child_of_fork);
    atexit(end_of_process);
}
