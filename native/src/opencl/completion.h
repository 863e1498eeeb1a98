/* Reading the times of a command that is complete. */
#ifndef PERFSUITE_OPENCL_COMPLETION_H
#define PERFSUITE_OPENCL_COMPLETION_H

#include "thread_ring.h"

/* Fills in the four times and lets go of the event where the command is complete. */
bool ps_cl_complete(ps_cl_entry *entry);
void ps_cl_drop_event(ps_cl_entry *entry);

#endif
