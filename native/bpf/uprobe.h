/* Attaching a program to a function of a process, in one of two ways.
 *
 * A perf event for each probe is the older way. Since Linux 6.16, and in stable series since July 2025, it takes
 * CAP_SYS_ADMIN; links to many probes at once (Linux 6.6) take no more than what loading a program takes.
 *
 * Source: Linux, kernel/events/core.c (perf_uprobe_event_init), kernel/trace/bpf_trace.c (bpf_uprobe_multi_link_attach).
 */
#ifndef PERFSUITE_BPF_UPROBE_H
#define PERFSUITE_BPF_UPROBE_H

#include <bpf/libbpf.h>

#include "mapped_files.h"

typedef enum ps_uprobe_way { PS_BY_PERF_EVENT, PS_BY_MULTI_LINK } ps_uprobe_way;

/* A probe that is attached: one of the two. */
typedef struct ps_uprobe {
    struct bpf_link *link;
    int fd; /* plus 1; 0: none */
} ps_uprobe;

/* Which way this kernel leaves open; tried on a file. */
bool ps_choose_uprobe_way(ps_uprobe_way *way, ps_problem *problem);

/* Says before the program is loaded how it will be attached. */
void ps_prepare_uprobe(struct bpf_program *program, ps_uprobe_way way);

bool ps_attach_uprobe(ps_uprobe *uprobe, ps_uprobe_way way, const struct bpf_program *program, int32_t pid,
                      const ps_function *function, bool is_at_return);

void ps_detach_uprobe(ps_uprobe *uprobe);

#endif
