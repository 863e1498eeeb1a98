/* The life of the process: its log, its background thread, its end. */
#ifndef PERFSUITE_OPENCL_PROCESS_H
#define PERFSUITE_OPENCL_PROCESS_H

#include "layer.h"

/* Before a queue is made: the log belongs to this process, the background thread runs, the end is watched. */
bool ps_cl_process_ready(void);
void ps_cl_process_watch_end(void);
void ps_cl_process_init(void);

/* Whether the log is this process's, and not that of a parent. */
bool ps_cl_process_is_owner(void);

#endif
