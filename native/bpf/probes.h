/* The programs in the kernel: loaded once, attached and detached as levels come and go. */
#ifndef PERFSUITE_BPF_PROBES_H
#define PERFSUITE_BPF_PROBES_H

#include <bpf/libbpf.h>

#include "mapped_files.h"
#include "options.h"
#include "uprobe.h"

struct probes; /* the skeleton that bpftool generates */

enum { PS_N_FUNCTIONS = 5, PS_N_ATTACHMENTS = 9 };

typedef struct ps_probes {
    struct probes *skeleton;
    int32_t pid;
    uint32_t levels; /* that are attached */
    ps_uprobe_way way;
    ps_function functions[PS_N_FUNCTIONS];
    ps_uprobe attached[PS_N_ATTACHMENTS]; /* with a link of libbpf's for a tracepoint */
} ps_probes;

/* What to look for in the target; before anything else. */
void ps_probes_begin(ps_probes *probes);

bool ps_probes_load(ps_probes *probes, const ps_options *options, int n_cpus, const int *counter_fds,
                    ps_problem *problem);

/* Attaches and detaches until exactly these levels are recorded. On failure what was attached before may be gone. */
bool ps_probes_set_levels(ps_probes *probes, uint32_t levels, ps_problem *problem);

/* The descriptor of the i-th program of PS_N_ATTACHMENTS, and its name. */
int ps_probes_program(const ps_probes *probes, int i, char *name, size_t n_bytes);

/* Events that have found no room so far. */
uint64_t ps_probes_lost(const ps_probes *probes);

/* Whether the target has executed another program in its place; nothing is recorded from then on. */
bool ps_probes_target_left(const ps_probes *probes);

int ps_probes_ring_fd(const ps_probes *probes);
int ps_probes_pages_fd(const ps_probes *probes);

/* Tries everything on this process itself. */
bool ps_probes_check(ps_problem *problem);

void ps_probes_close(ps_probes *probes);

#endif
