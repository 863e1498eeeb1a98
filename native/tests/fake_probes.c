/* Stands in for the probe library: fixed answers, and a note of what was asked. */
#include <string.h>

#include "perfsuite/probe.h"

#define EXPORTED __attribute__((visibility("default")))

enum { MOST = 4096, MOST_THREADS = 1024, FAILED = 3 };

typedef struct asked {
    int32_t n_threads;
    int64_t what;
    int64_t budget_ms;
} asked;

static asked noted[MOST];
static int32_t n_noted;

EXPORTED int32_t fake_asked(asked *rows, int32_t most);

/* Hands out what was asked since the last call. */
int32_t fake_asked(asked *rows, int32_t most) {
    int32_t n_rows = n_noted < most ? n_noted : most;
    if (rows) {
        memcpy(rows, noted, (size_t)n_rows * sizeof *rows);
    }
    n_noted = 0;
    return n_rows;
}

static int note(const ps_probe_setup *setup, int64_t what) {
    noted[n_noted++ % MOST] = (asked){setup->n_threads, what, setup->budget_ms};
    return setup->n_threads > MOST_THREADS ? FAILED : PS_OK;
}

EXPORTED int ps_probe_bandwidth(const ps_probe_setup *setup, int64_t working_set_bytes, ps_bandwidth *out) {
    double size = (double)working_set_bytes;
    *out = (ps_bandwidth){{1e15 / size, 64e9, 1}, {2e15 / size, 64e9, 1}, {3e15 / size, 64e9, 1}};
    return note(setup, working_set_bytes);
}

EXPORTED int ps_probe_compute(const ps_probe_setup *setup, int type, ps_rate *out) {
    *out = (ps_rate){type == PS_INT8 ? 16e11 : 4e11, 1e11, 1};
    int status = note(setup, -type);
    return type == PS_F16 ? PS_UNSUPPORTED : status;
}

EXPORTED int ps_probe_dispatch(const ps_probe_setup *setup, ps_latency *out) {
    *out = (ps_latency){0.2, 0.4, 1};
    return note(setup, 1);
}

EXPORTED const char *ps_status_text(int status) { return status == FAILED ? "no luck" : "?"; }
