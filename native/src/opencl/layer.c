/* The tracing layer's entry points, its environment, and what a process asks of it (perfsuite/cl_layer.h). */
#define PS_LAYER_NAME "perfsuite tracing layer"
#include "layer.h"
#include "layer_entry.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "drain.h"
#include "log_writer.h"
#include "objects.h"
#include "perfsuite/cl_layer.h"
#include "process.h"

struct _cl_icd_dispatch ps_cl_below;
_Atomic uint32_t ps_cl_gate = PS_CL_GATE_OFF;

void ps_cl_say(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "perfsuite's OpenCL layer: %s\n", text);
}

static uint64_t ring_capacity(void) {
    const char *asked = getenv("PERFSUITE_OPENCL_LAYER_RING"); /* for tests */
    uint64_t capacity = asked ? strtoull(asked, NULL, 10) : 0;
    return capacity ? capacity : 32768; /* a second or two of a language model */
}

static bool is_profile_only(void) {
    const char *mode = getenv("PERFSUITE_OPENCL_LAYER_MODE");
    if (mode && strcmp(mode, "profile") != 0 && strcmp(mode, "record") != 0) {
        ps_cl_say("PERFSUITE_OPENCL_LAYER_MODE is '%s', neither 'record' nor 'profile': it records", mode);
    }
    return mode && strcmp(mode, "profile") == 0;
}

static bool is_begun, is_profiling;

/* A process may have two loaders, and each of them brings the layer in; what it does below goes by the first. */
static bool ps_layer_begin(const struct _cl_icd_dispatch *target, cl_uint n_target) {
    if (is_begun) {
        return true;
    }
    is_begun = true;
    /* cppcheck-suppress pointerSize ; tables of pointers */
    memcpy(&ps_cl_below, target, n_target * sizeof(void *));
    is_profiling = is_profile_only();
    ps_cl_events_init();
    ps_cl_threads_init(ring_capacity());
    if (is_profiling) {
        atomic_store(&ps_cl_gate, PS_CL_GATE_PROFILE_ONLY);
        return true;
    }
    if (ps_cl_log_is_possible(getenv("PERFSUITE_OPENCL_LOG")) && ps_cl_log_open()) {
        ps_cl_process_init();
        atomic_store(&ps_cl_gate, 0);
    }
    return true;
}

static void ps_layer_replace(struct _cl_icd_dispatch *table) {
    if (ps_cl_is_off()) {
        return;
    }
    ps_cl_replace_queues(table);
    ps_cl_replace_events(table);
    if (!is_profiling) {
        ps_cl_replace_memories(table);
        ps_cl_replace_kernels(table);
        ps_cl_replace_launches(table);
        ps_cl_replace_enqueues(table);
    }
}

PS_EXPORT bool ps_cl_flush(int64_t limit_ns) {
    return ps_cl_is_off() || ps_cl_drain_flush(limit_ns);
}

PS_EXPORT uint64_t ps_cl_n_lost(void) {
    return ps_cl_drain_n_lost();
}
