/* Commands that were not complete when they came out of their ring, by queue; the drain's alone.
 *
 * In an in-order queue none is complete before those in front of it, so only the first is asked for; out of order, all.
 */
#include "pending.h"

#include <stdlib.h>

#include "completion.h"

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
