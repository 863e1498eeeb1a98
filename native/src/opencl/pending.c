/* Commands that were not complete when they came out of their ring, by queue; the drain's alone.
 *
 * In an in-order queue none is complete before those in front of it, so only the first is asked for; out of order, all.
 */
#include "pending.h"

#include <stdlib.h>

void ps_cl_drop_event(ps_cl_entry *entry) {
    if (entry->event && entry->command.flags & PS_CL_CALLERS_EVENT) {
        ps_cl_event_let_go(entry->event);
    } else if (entry->event) {
        ps_cl_below.clReleaseEvent(entry->event);
    }
    entry->event = NULL;
}

static bool read_time(cl_event event, cl_profiling_info name, int64_t *time_ns) {
    cl_ulong value = 0;
    cl_int status = ps_cl_below.clGetEventProfilingInfo(event, name, sizeof(value), &value, NULL);
    *time_ns = status == CL_SUCCESS ? (int64_t)value : 0;
    return status == CL_SUCCESS;
}

static bool is_on_its_way(const ps_cl_entry *entry, cl_int *status) {
    *status = CL_COMPLETE;
    ps_cl_below.clGetEventInfo(entry->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(*status), status, NULL);
    return *status > CL_COMPLETE;
}

/* A command without END, or with one of 0, is not complete, or failed, or its driver does not give it. */
static bool read_end(ps_cl_entry *entry, bool *has_time) {
    ps_cl_command *command = &entry->command;
    *has_time = read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns);
    if (*has_time && command->end_ns) {
        return true;
    }
    cl_int status;
    if (is_on_its_way(entry, &status)) {
        return false;
    }
    command->status = status;
    *has_time = read_time(entry->event, CL_PROFILING_COMMAND_END, &command->end_ns);
    return true;
}

bool ps_cl_complete(ps_cl_entry *entry) {
    ps_cl_command *command = &entry->command;
    bool has_time;
    if (!entry->event) {
        return true;
    }
    if (!read_end(entry, &has_time)) {
        return false;
    }
    if (command->status >= CL_COMPLETE) {
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_QUEUED, &command->queued_ns);
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_SUBMIT, &command->submit_ns);
        has_time |= read_time(entry->event, CL_PROFILING_COMMAND_START, &command->start_ns);
    }
    if (!has_time || command->status < CL_COMPLETE) {
        command->flags |= PS_CL_NO_PROFILE;
    }
    ps_cl_drop_event(entry);
    return true;
}

enum { CHUNK = 256, MAX_WAITING = 1 << 17 };

static ps_cl_waiting *free_ones;
static uint32_t n_made;
static uint64_t n_commands, n_all;
static ps_cl_queue_state *busy;

static ps_cl_waiting *take(void) {
    if (!free_ones && n_made < MAX_WAITING) {
        ps_cl_waiting *chunk = (ps_cl_waiting *)malloc(CHUNK * sizeof(*chunk));
        for (int i = 0; chunk && i < CHUNK; i++) {
            chunk[i].next = free_ones;
            free_ones = &chunk[i];
        }
        n_made += chunk ? CHUNK : 0;
    }
    ps_cl_waiting *waiting = free_ones;
    if (waiting) {
        free_ones = waiting->next;
    }
    return waiting;
}

/* Behind all of lower sequence: nearly always at the end. */
static void insert(ps_cl_queue_state *queue, ps_cl_waiting *waiting) {
    ps_cl_waiting *before = queue->last;
    while (before && before->entry.command.sequence > waiting->entry.command.sequence) {
        before = before->previous;
    }
    waiting->previous = before;
    waiting->next = before ? before->next : queue->first;
    *(waiting->next ? &waiting->next->previous : &queue->last) = waiting;
    *(before ? &before->next : &queue->first) = waiting;
}

bool ps_cl_pending_add(const ps_cl_entry *entry) {
    ps_cl_waiting *waiting = take();
    if (!waiting) {
        return false;
    }
    ps_cl_queue_state *queue = entry->queue;
    waiting->entry = *entry;
    insert(queue, waiting);
    n_all++;
    n_commands += entry->command.type != PS_CL_CLOCK_ENTRY;
    if (!queue->is_busy) {
        queue->is_busy = true;
        queue->next_busy = busy;
        busy = queue;
    }
    return true;
}

static void take_out(ps_cl_queue_state *queue, ps_cl_waiting *waiting) {
    *(waiting->previous ? &waiting->previous->next : &queue->first) = waiting->next;
    *(waiting->next ? &waiting->next->previous : &queue->last) = waiting->previous;
    n_all--;
    n_commands -= waiting->entry.command.type != PS_CL_CLOCK_ENTRY;
    waiting->next = free_ones;
    free_ones = waiting;
}

static void settle(ps_cl_queue_state *queue, void (*write)(ps_cl_entry *)) {
    for (ps_cl_waiting *waiting = queue->first, *next; waiting; waiting = next) {
        next = waiting->next;
        if (ps_cl_complete(&waiting->entry)) {
            write(&waiting->entry);
            take_out(queue, waiting);
        } else if (!queue->is_out_of_order) {
            return;
        }
    }
}

void ps_cl_pending_settle(void (*write)(ps_cl_entry *)) {
    for (ps_cl_queue_state **link = &busy; *link;) {
        ps_cl_queue_state *queue = *link;
        settle(queue, write);
        if (queue->first) {
            link = &queue->next_busy;
        } else {
            queue->is_busy = false;
            *link = queue->next_busy;
        }
    }
}

bool ps_cl_pending_holds(const ps_cl_queue_state *queue) {
    return queue->first != NULL;
}

uint64_t ps_cl_pending_count(void) {
    return n_commands;
}

bool ps_cl_pending_is_empty(void) {
    return n_all == 0;
}

bool ps_cl_pending_is_running(void) {
    for (ps_cl_queue_state *queue = busy; queue; queue = queue->next_busy) {
        for (ps_cl_waiting *waiting = queue->first; waiting; waiting = queue->is_out_of_order ? waiting->next : NULL) {
            cl_int status = CL_QUEUED;
            ps_cl_below.clGetEventInfo(waiting->entry.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                       NULL);
            if (status <= CL_RUNNING) {
                return true;
            }
        }
    }
    return false;
}

uint64_t ps_cl_pending_oldest(void) {
    uint64_t oldest = UINT64_MAX;
    for (ps_cl_queue_state *queue = busy; queue; queue = queue->next_busy) {
        if (queue->first && queue->first->entry.command.sequence < oldest) {
            oldest = queue->first->entry.command.sequence;
        }
    }
    return oldest;
}
