#include "buffers.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "log_out.h"

static bool take_checked(ps_buffers *buffers, const ps_bpf_record *record, size_t n_bytes) {
    bool is_whole = n_bytes >= sizeof(*record) && record->bytes >= sizeof(*record) && record->bytes <= n_bytes;
    buffers->drained_bytes += n_bytes;
    return !is_whole || buffers->take(buffers->context, record);
}

static int take_from_ring(void *context, void *record, size_t n_bytes) {
    return take_checked(context, record, n_bytes) ? 0 : -ECANCELED;
}

static enum bpf_perf_event_ret take_from_pages(void *context, int cpu, struct perf_event_header *event) {
    ps_buffers *buffers = context;
    (void)cpu;
    if (event->type == PERF_RECORD_SAMPLE) {
        const struct {
            struct perf_event_header header;
            uint32_t n_bytes;
            char bytes[];
        } __attribute__((packed)) *sample = (const void *)event;
        const ps_bpf_record *record = (const void *)sample->bytes;
        ps_bpf_record head; /* the sample is aligned to 4 bytes only */
        memcpy(&head, record, sizeof(head));
        buffers->drained_bytes += sample->n_bytes;
        if (sample->n_bytes >= sizeof(head) && head.bytes >= sizeof(head) && head.bytes <= sample->n_bytes &&
            !ps_collate(&buffers->collation, record, head.bytes)) {
            return LIBBPF_PERF_EVENT_ERROR;
        }
    }
    return LIBBPF_PERF_EVENT_CONT;
}

static struct perf_buffer *open_pages(ps_buffers *buffers, int map) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_BPF_OUTPUT,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_RAW,
        .watermark = 1, /* never reached: nobody is woken */
        .wakeup_watermark = UINT32_MAX,
    };
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (; buffers->capacity_bytes >= page_bytes; buffers->capacity_bytes /= 2) {
        buffers->pages =
            perf_buffer__new_raw(map, buffers->capacity_bytes / page_bytes, &attr, take_from_pages, buffers, NULL);
        if (buffers->pages || errno != EPERM) {
            break;
        }
    }
    return buffers->pages;
}

bool ps_buffers_open(ps_buffers *buffers, const ps_options *options, const ps_probes *probes, ps_take_record take,
                     void *context, ps_problem *problem) {
    memset(buffers, 0, sizeof(*buffers));
    buffers->take = take;
    buffers->context = context;
    uint64_t wanted = buffers->capacity_bytes = ps_buffer_bytes(options);
    if (options->settings.buffer == PS_BPF_RING) {
        buffers->ring = ring_buffer__new(ps_probes_ring_fd(probes), take_from_ring, buffers, NULL);
    } else {
        open_pages(buffers, ps_probes_pages_fd(probes));
    }
    return buffers->ring || buffers->pages || ps_fail(problem, "no buffer of %llu bytes (%s)", (unsigned long long)wanted,
                                                       strerror(errno));
}

/* What was recorded before the pages are read is in them by then. */
static bool drain_pages(ps_buffers *buffers, bool is_last) {
    int64_t until_ns = is_last ? INT64_MAX : ps_now_ns();
    return perf_buffer__consume(buffers->pages) >= 0 &&
           ps_collate_until(&buffers->collation, until_ns, buffers->take, buffers->context);
}

bool ps_buffers_drain(ps_buffers *buffers, bool is_last) {
    buffers->drained_bytes = 0;
    return buffers->ring ? ring_buffer__consume(buffers->ring) >= 0 : drain_pages(buffers, is_last);
}

void ps_buffers_close(ps_buffers *buffers) {
    ring_buffer__free(buffers->ring);
    perf_buffer__free(buffers->pages);
    ps_collation_close(&buffers->collation);
    memset(buffers, 0, sizeof(*buffers));
}
