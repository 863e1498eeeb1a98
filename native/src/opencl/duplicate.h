/* Kernel duplication: what a launch calls. */
#ifndef PERFSUITE_OPENCL_DUPLICATE_H
#define PERFSUITE_OPENCL_DUPLICATE_H

#include "layer.h"
#include "thread_ring.h"

typedef struct ps_cl_launch {
    cl_command_queue queue;
    cl_kernel kernel;
    cl_uint work_dim;
    const size_t *offset, *global, *local;
    cl_uint n_waits;
    const cl_event *waits;
} ps_cl_launch;

extern atomic_bool ps_cl_duplication_armed;
typedef struct ps_cl_duplicating ps_cl_duplicating;
/* Before the program's launch: NULL where this is not the one, or it cannot be duplicated. */
ps_cl_duplicating *ps_cl_duplication_begin(const ps_cl_launch *launch);
/* After it, with its status and its record; frees. */
void ps_cl_duplication_run(ps_cl_duplicating *duplicating, const ps_cl_launch *launch, cl_int status,
                           const ps_cl_entry *original);

#endif
