/* What the kernel says that its programs cost. */
#ifndef PERFSUITE_BPF_RUN_STATISTICS_H
#define PERFSUITE_BPF_RUN_STATISTICS_H

#include "log_out.h"
#include "probes.h"

/* Has the kernel time every program of the machine, until this process ends; takes CAP_SYS_ADMIN. Where it cannot be, a
 * note on standard error says so. */
void ps_enable_run_statistics(void);

/* A PROBE record for each program. */
void ps_tell_run_statistics(const ps_probes *probes, ps_log_out *out);

#endif
