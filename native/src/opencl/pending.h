/* Commands that were not complete when they came out of their ring; the drain's alone. */
#ifndef PERFSUITE_OPENCL_PENDING_H
#define PERFSUITE_OPENCL_PENDING_H

#include "thread_ring.h"

typedef struct ps_cl_waiting {
    struct ps_cl_waiting *next, *previous;
    ps_cl_entry entry;
} ps_cl_waiting;

/* Fills in the four times and lets go of the event where the command is complete. */
bool ps_cl_complete(ps_cl_entry *entry);
void ps_cl_drop_event(ps_cl_entry *entry);

/* Puts the entry by, in its queue's order of sequences; false where there is no room. */
bool ps_cl_pending_add(const ps_cl_entry *entry);
/* Writes what is complete by now. */
void ps_cl_pending_settle(void (*write)(ps_cl_entry *entry));
bool ps_cl_pending_holds(const ps_cl_queue_state *queue);
uint64_t ps_cl_pending_count(void);  /* of the program's commands */
bool ps_cl_pending_is_empty(void);
bool ps_cl_pending_is_running(void); /* the device works on one of them */
uint64_t ps_cl_pending_oldest(void); /* the lowest sequence; UINT64_MAX for none */

#endif
