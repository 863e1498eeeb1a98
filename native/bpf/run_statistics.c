#include "run_statistics.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 32 };

void ps_enable_run_statistics(void) {
    if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0) { /* the descriptor stays open as long as the process lives */
        fprintf(stderr, "note: the kernel does not time its programs (%s); it needs root\n", strerror(errno));
    }
}

void ps_tell_run_statistics(const ps_probes *probes, ps_log_out *out) {
    for (int i = 0; i < PS_N_ATTACHMENTS; i++) {
        struct {
            uint64_t n_runs;
            char name[NAME_BYTES];
        } content = {0};
        struct bpf_prog_info info = {0};
        uint32_t info_bytes = sizeof(info);
        int fd = ps_probes_program(probes, i, content.name, sizeof(content.name));
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &info_bytes) == 0) {
            content.n_runs = info.run_cnt;
            ps_bpf_record record = {.kind = PS_BPF_PROBE, .subject = info.run_time_ns};
            ps_log_record(out, record, &content, sizeof(content));
        }
    }
}
