/* What a process may ask of the OpenCL layer that the loader brought into it (OPENCL_LAYERS), by dlopen(RTLD_NOLOAD).
 *
 * The environment says where the log goes: PERFSUITE_OPENCL_LOG names an existing directory, the layer writes
 * opencl-<pid>.log there.  Without it, or where the file cannot be made, the layer says so once on stderr and leaves
 * every call alone.  PERFSUITE_OPENCL_LAYER_MODE is 'record' (the default), or 'profile': queues are made with
 * profiling, and nothing else is done; this is the runtime's own share of what recording costs.
 * PERFSUITE_OPENCL_LAYER_RING is the number of commands that a thread may be ahead of the background thread.
 *
 * A child of fork writes no log where its parent had made a queue, else one of its own.  exec, _exit and a signal end
 * the log without a PS_CL_END.
 */
#ifndef PERFSUITE_CL_LAYER_H
#define PERFSUITE_CL_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until every recorded command is complete and in the log, at most `limit_ns`; false when time ran out. */
bool ps_cl_flush(int64_t limit_ns);

/* Commands that could not be recorded so far, in all threads. */
uint64_t ps_cl_n_lost(void);

/* Kernel duplication, the ground truth for the times of events (lm-Meter).
 *
 * The next time that a kernel called `name` is launched, after `skip` such launches have gone by, the layer lets it run
 * once as the program asked for it, and then measures on its own: it keeps a copy of every buffer that the kernel was
 * given, and in each of `n_rounds` rounds runs the same launch once (base) and then 1 + `n_duplicates` times
 * (duplicated), each between two clFinish, after restoring the buffers; at the end it restores them for good.  The
 * program sees nothing of it but the time.  The duplicates are recorded, flagged PS_CL_REPLAYED. */
typedef struct ps_cl_duplication {
    char name[128];
    int32_t skip;
    int32_t n_duplicates;
    int32_t n_rounds;
} ps_cl_duplication;

typedef struct ps_cl_round {
    int64_t base_ns, duplicated_ns;  /* host time from before the first enqueue to after clFinish */
    int64_t base_execution_ns;       /* END - START of the single launch */
    int64_t duplicates_execution_ns; /* sum of END - START over the 1 + n launches */
    int64_t duplicates_occupied_ns;  /* device clock from the END of the first of them to the END of the last */
} ps_cl_round;

/* Arms one duplication; false where one is armed already or the plan is not sound (n < 1).  NULL takes back one whose
 * launch has not come; false where there is none. */
bool ps_cl_duplicate(const ps_cl_duplication *plan);

/* Hands over the rounds once they are measured: their number, 0 while the launch has not come, -1 where it could not be
 * duplicated; then `error` says why (an argument that cannot be copied, no memory, the driver refused). */
int32_t ps_cl_duplication_rounds(ps_cl_round *rounds, int32_t capacity, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
