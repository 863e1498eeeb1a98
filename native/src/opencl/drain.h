/* The background thread. */
#ifndef PERFSUITE_OPENCL_DRAIN_H
#define PERFSUITE_OPENCL_DRAIN_H

#include "layer.h"
#include "thread_ring.h"

bool ps_cl_drain_start(void);
bool ps_cl_drain_flush(int64_t limit_ns);
/* Ends it within the limit: the log is whole then. */
void ps_cl_drain_stop(int64_t limit_ns);
uint64_t ps_cl_drain_n_lost(void);
void ps_cl_drain_retire(ps_cl_queue_state *queue);

#endif
