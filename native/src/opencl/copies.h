/* The copies of what a kernel was given. */
#ifndef PERFSUITE_OPENCL_COPIES_H
#define PERFSUITE_OPENCL_COPIES_H

#include "objects.h"

typedef struct ps_cl_copies ps_cl_copies;
/* Copies all buffers and images of the kernel; NULL with the reason in `error`. */
ps_cl_copies *ps_cl_copies_take(cl_command_queue queue, const ps_cl_kernel_state *kernel, char *error, size_t bytes);
/* Copies them again after the launch, and finds out which of them it changed. */
bool ps_cl_copies_take_after(ps_cl_copies *copies, char *error, size_t bytes);
/* Brings back everything as it was after the launch, or what the launch changed as it was before it. */
bool ps_cl_copies_restore(ps_cl_copies *copies, bool is_after, char *error, size_t bytes);
void ps_cl_copies_free(ps_cl_copies *copies);

#endif
