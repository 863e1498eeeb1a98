/* The background thread: takes commands out of the threads' rings, reads the times of those that are complete, and
 * writes the log.
 *
 * It is woken where a call of the program returns because commands are complete, for then the device is idle and the
 * times cost nobody anything; where a ring is half full; and ten times a second.
 */
#define _GNU_SOURCE
#include "drain.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "device_clock.h"
#include "log_writer.h"
#include "pending.h"

#define PERIOD_NS INT64_C(100000000)
#define HURRY_NS INT64_C(500000)
#define END_LIMIT_NS INT64_C(5000000000)
/* What does not move for so long at the end of the process is given up. */
#define END_STALL_NS INT64_C(1000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake, passed;
static bool is_running, is_stopping, is_over; /* under the lock, as are the next four */
static uint64_t n_started, n_passed; /* passes */
static uint64_t oldest = UINT64_MAX;  /* sequence of what is not written, after the last pass */
static int n_hurrying;                /* flushes that wait */
static atomic_bool is_kicked;

static ps_cl_queue_state *_Atomic retired; /* by the program's threads */
static ps_cl_queue_state *leaving;         /* the drain's: with commands that are not complete */
static _Atomic uint64_t n_dropped;         /* no room among the pending */
static uint64_t n_dropped_written;
static uint64_t n_taken; /* out of the rings, the program's */

/* ---- one command ------------------------------------------------------------------------------------------------ */

static void write_clock(const ps_cl_entry *entry) {
    const ps_cl_command *marker = &entry->command;
    ps_cl_clock record = {.prefix = {PS_CL_CLOCK, sizeof(record)},
                          .device = entry->queue->device,
                          .source = PS_CL_CLOCK_MARKER,
                          .device_ns = marker->queued_ns,
                          .host_before_ns = marker->host_start_ns,
                          .host_after_ns = marker->host_end_ns};
    if (!(marker->flags & PS_CL_NO_PROFILE) && marker->queued_ns) {
        ps_cl_log_note(&record, sizeof(record));
    }
}

static void write_entry(ps_cl_entry *entry) {
    if (entry->command.type == PS_CL_CLOCK_ENTRY) {
        write_clock(entry);
    } else {
        ps_cl_log_command(&entry->command);
    }
}

static void take_entry(ps_cl_entry *entry) {
    n_taken += entry->command.type != PS_CL_CLOCK_ENTRY && !(entry->command.flags & PS_CL_REPLAYED);
    bool is_first = entry->queue->is_out_of_order || !ps_cl_pending_holds(entry->queue);
    if (!entry->event || (is_first && ps_cl_complete(entry))) {
        write_entry(entry);
    } else if (!ps_cl_pending_add(entry)) {
        if (entry->command.type != PS_CL_CLOCK_ENTRY) {
            atomic_fetch_add(&n_dropped, 1);
        }
        ps_cl_drop_event(entry);
    }
}

/* ---- one pass --------------------------------------------------------------------------------------------------- */

static void take_ring(ps_cl_thread *thread) {
    uint64_t tail = atomic_load_explicit(&thread->tail, memory_order_relaxed);
    while (tail != thread->until) {
        take_entry(&thread->entries[tail & thread->mask]);
        atomic_store_explicit(&thread->tail, ++tail, memory_order_release);
    }
}

static void write_loss(uint32_t thread, uint64_t now, uint64_t *written) {
    if (now != *written) {
        ps_cl_loss record = {
            .prefix = {PS_CL_LOSS, sizeof(record)}, .thread = thread, .n_commands = now - *written};
        ps_cl_log_note(&record, sizeof(record));
        *written = now;
    }
}

static void write_losses(void) {
    for (ps_cl_thread *thread = ps_cl_thread_first(); thread; thread = thread->next) {
        write_loss(thread->id, atomic_load_explicit(&thread->n_lost, memory_order_relaxed), &thread->n_lost_written);
        ps_cl_thread_recycle(thread);
    }
    uint64_t n_others = atomic_load(&n_dropped) + ps_cl_log_n_lost() + atomic_load(&ps_cl_n_ringless);
    write_loss(0, n_others, &n_dropped_written);
}

/* Queues that the program released are used again once none of their commands is on its way. */
static void let_queues_go(ps_cl_queue_state *gone) {
    while (gone) {
        ps_cl_queue_state *next = gone->next_retired;
        gone->next_retired = leaving;
        leaving = gone;
        gone = next;
    }
    for (ps_cl_queue_state **link = &leaving; *link;) {
        ps_cl_queue_state *queue = *link;
        if (queue->is_busy) {
            link = &queue->next_retired;
        } else {
            *link = queue->next_retired;
            ps_cl_shelf_give_back(&ps_cl_queues, &queue->item);
        }
    }
}

static void pass(void) {
    ps_cl_queue_state *gone = atomic_exchange(&retired, NULL);
    ps_cl_thread *first = ps_cl_thread_first();
    for (ps_cl_thread *thread = first; thread; thread = thread->next) {
        thread->until = atomic_load_explicit(&thread->head, memory_order_acquire);
    }
    ps_cl_log_write_notes(); /* those that the commands refer to */
    ps_cl_pending_settle(write_entry);
    for (ps_cl_thread *thread = first; thread; thread = thread->next) {
        take_ring(thread);
    }
    let_queues_go(gone);
    ps_cl_log_flush();
    write_losses();
    ps_cl_log_write_notes();
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

static struct timespec after(int64_t ns) {
    int64_t at = ps_now_ns() + ns;
    return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

/* Sleeps until it is time for a pass. */
static void wait_for_work(void) {
    pthread_mutex_lock(&lock);
    struct timespec until = after(n_hurrying || is_stopping ? HURRY_NS : PERIOD_NS);
    int status = 0;
    while (!atomic_load(&is_kicked) && status != ETIMEDOUT) {
        status = pthread_cond_timedwait(&wake, &lock, &until);
    }
    atomic_store(&is_kicked, false);
    n_started++;
    pthread_mutex_unlock(&lock);
}

static void tell_passed(void) {
    pthread_mutex_lock(&lock);
    n_passed = n_started;
    oldest = ps_cl_pending_oldest();
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&lock);
}

static bool must_stop(void) {
    pthread_mutex_lock(&lock);
    bool answer = is_stopping;
    pthread_mutex_unlock(&lock);
    return answer;
}

static bool is_drained(void) {
    for (ps_cl_thread *thread = ps_cl_thread_first(); thread; thread = thread->next) {
        if (atomic_load_explicit(&thread->head, memory_order_acquire) !=
            atomic_load_explicit(&thread->tail, memory_order_relaxed)) {
            return false;
        }
    }
    return ps_cl_pending_is_empty();
}

/* The program has ended: waits for what is still on its way, but not for ever. */
static void finish_passes(void) {
    int64_t begin_ns = ps_now_ns(), moved_ns = begin_ns;
    uint64_t n_before = ps_cl_pending_count();
    for (;;) {
        pass();
        int64_t now_ns = ps_now_ns();
        if (ps_cl_pending_count() != n_before) {
            n_before = ps_cl_pending_count();
            moved_ns = now_ns;
        }
        bool is_stalled = now_ns - moved_ns > END_STALL_NS && !ps_cl_pending_is_running();
        if (is_drained() || is_stalled || now_ns - begin_ns > END_LIMIT_NS) {
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = HURRY_NS}, NULL);
    }
}

/* Commands that never came into a ring. */
static uint64_t n_refused_by_rings(void) {
    uint64_t n = atomic_load(&ps_cl_n_ringless);
    for (ps_cl_thread *thread = ps_cl_thread_first(); thread; thread = thread->next) {
        n += atomic_load_explicit(&thread->n_lost, memory_order_relaxed);
    }
    return n;
}

uint64_t ps_cl_drain_n_lost(void) {
    return n_refused_by_rings() + atomic_load(&n_dropped) + ps_cl_log_n_lost();
}

/* A queue that still lives: what was enqueued is sent to the device, as nobody will call clFinish. */
static void say_goodbye(ps_cl_item *item, void *context) {
    (void)context;
    ps_cl_clock_mark((ps_cl_queue_state *)item);
    ps_cl_below.clFlush(((ps_cl_queue_state *)item)->handle);
}

static void close_log(void) {
    ps_cl_shelf_each(&ps_cl_queues, say_goodbye, NULL);
    finish_passes();
    ps_cl_clock_read_all();
    ps_cl_log_write_notes();
    uint64_t n_unfinished = ps_cl_pending_count(), n_in_rings = 0;
    for (ps_cl_thread *thread = ps_cl_thread_first(); thread; thread = thread->next) {
        n_in_rings += atomic_load_explicit(&thread->head, memory_order_acquire) -
                      atomic_load_explicit(&thread->tail, memory_order_relaxed);
    }
    uint64_t n_refused = n_refused_by_rings();
    ps_cl_log_close(&(ps_cl_end){.n_commands = n_taken + n_in_rings + n_refused,
                                 .n_recorded = ps_cl_log_n_recorded(),
                                 .n_lost = n_refused + atomic_load(&n_dropped) + ps_cl_log_n_lost(),
                                 .n_unfinished = n_unfinished + n_in_rings});
}

static void *run(void *context) {
    (void)context;
    int64_t clock_ns = ps_now_ns();
    while (!must_stop()) {
        wait_for_work();
        if (ps_now_ns() - clock_ns >= PERIOD_NS) {
            ps_cl_clock_read_all();
            clock_ns = ps_now_ns();
        }
        pass();
        tell_passed();
    }
    close_log();
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

bool ps_cl_drain_start(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &monotonic);
    pthread_cond_init(&passed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former); /* the program's signals are its own threads' */
    pthread_t thread;
    is_running = pthread_create(&thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &former, NULL);
    if (is_running) {
        pthread_setname_np(thread, "perfsuite-cl");
        pthread_detach(thread);
    }
    return is_running;
}

void ps_cl_drain_kick(void) {
    if (!atomic_exchange(&is_kicked, true)) {
        pthread_mutex_lock(&lock);
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
    }
}

bool ps_cl_drain_flush(int64_t limit_ns) {
    uint64_t target = atomic_load(&ps_cl_next_sequence);
    struct timespec until = after(limit_ns < 0 ? 0 : limit_ns);
    pthread_mutex_lock(&lock);
    bool is_done = !is_running || is_over;
    uint64_t begun = n_started;
    n_hurrying++;
    atomic_store(&is_kicked, true);
    pthread_cond_signal(&wake);
    while (!is_done && pthread_cond_timedwait(&passed, &lock, &until) != ETIMEDOUT) {
        is_done = is_over || (n_passed > begun && oldest >= target);
    }
    n_hurrying--;
    pthread_mutex_unlock(&lock);
    return is_done;
}

void ps_cl_drain_stop(int64_t limit_ns) {
    struct timespec until = after(limit_ns);
    pthread_mutex_lock(&lock);
    is_stopping = true;
    atomic_store(&is_kicked, true);
    pthread_cond_signal(&wake);
    while (is_running && !is_over && pthread_cond_timedwait(&passed, &lock, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&lock);
}

void ps_cl_drain_retire(ps_cl_queue_state *queue) {
    if (atomic_load(&ps_cl_gate) & PS_CL_GATE_PROFILE_ONLY) {
        ps_cl_shelf_give_back(&ps_cl_queues, &queue->item); /* no command refers to it */
        return;
    }
    queue->next_retired = atomic_load(&retired);
    while (!atomic_compare_exchange_weak(&retired, &queue->next_retired, queue)) {
    }
    ps_cl_drain_kick();
}
