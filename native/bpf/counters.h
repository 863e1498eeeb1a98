/* Performance counters, one on each processor, for the kernel's programs to read. */
#ifndef PERFSUITE_BPF_COUNTERS_H
#define PERFSUITE_BPF_COUNTERS_H

#include "options.h"

/* Opens what this machine counts and leaves the rest out of the options, with a note on standard error for each. The
 * descriptors lie at counter x n_cpus + processor, -1 where a processor is absent; NULL where there is no memory. */
int *ps_open_counters(ps_options *options, int n_cpus);

#endif
