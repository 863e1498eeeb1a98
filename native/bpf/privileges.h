/* What the helper may do: CAP_BPF and CAP_PERFMON, and nothing else as early as works. */
#ifndef PERFSUITE_BPF_PRIVILEGES_H
#define PERFSUITE_BPF_PRIVILEGES_H

#include "problem.h"

/* Leaves what the parent handed down: open files but the first three, the environment, the processors that it is bound
 * to, its priority. */
void ps_leave_inheritance(void);

/* This machine can do it and this process may. */
bool ps_check_machine(ps_problem *problem);

/* From here on CAP_BPF and CAP_PERFMON alone, for good. */
bool ps_drop_privileges(ps_problem *problem);

#endif
