/* Stands in for the engine library's operators: three samples, the largest of which is what the parameters spread over;
 * and operators that copy a number of F32 to their output, and take a microsecond for each in a graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perfsuite/operator_run.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int32_t ps_operator_bench(const ps_operator_spec *spec, int32_t n_threads, int64_t budget_ns, double *samples_ns,
                                   int32_t max_samples, int32_t *n_samples, char *error, size_t error_bytes) {
    if (strcmp(spec->op, "DANCE") == 0) {
        strncpy(error, "no dancing", error_bytes - 1);
        return -1;
    }
    samples_ns[0] = (double)spec->spread_bytes + 1.0;
    samples_ns[1] = (double)spec->spread_bytes;
    samples_ns[2] = (double)(n_threads - 1);
    *n_samples = strcmp(spec->op, "NOTHING") == 0 ? 0 : max_samples < 3 ? max_samples : 3;
    return strcmp(spec->type, "q4_K") == 0 ? 0 : -1;
}

struct ps_operator_device {
    int n_open;
};

struct ps_operator_run {
    ps_operator_device *device;
    float given, output[1 + PS_OPERATOR_GUARD_VALUES];
    int n_computed;
};

static int32_t failed(char *error, size_t error_bytes, const char *why) {
    strncpy(error, why, error_bytes - 1);
    return -1;
}

EXPORTED int32_t ps_operator_device_open(const char *backend, const char *backend_path, int32_t n_threads,
                                         ps_operator_device **device, char *error, size_t error_bytes) {
    if (strcmp(backend, "CPU") != 0 && !backend_path) {
        return failed(error, error_bytes, "no such backend");
    }
    *device = calloc(1, sizeof **device);
    return 0;
}

EXPORTED const char *ps_operator_device_name(const ps_operator_device *device) {
    return device->n_open ? "A busy device" : "An idle device";
}

EXPORTED void ps_operator_device_close(ps_operator_device *device) {
    if (device->n_open) {
        abort(); /* its operators are closed before it is */
    }
    free(device);
}

EXPORTED int32_t ps_operator_check(const ps_operator_device *device, const ps_operator_spec *spec, char *error,
                                   size_t error_bytes) {
    return strcmp(spec->op, "DANCE") == 0 ? failed(error, error_bytes, "no dancing") : 0;
}

EXPORTED int32_t ps_operator_open(ps_operator_device *device, const ps_operator_spec *spec, ps_operator_run **run,
                                  char *error, size_t error_bytes) {
    if (ps_operator_check(device, spec, error, error_bytes) != 0) {
        return -1;
    }
    *run = calloc(1, sizeof **run);
    (*run)->device = device;
    device->n_open++;
    return 0;
}

EXPORTED int32_t ps_operator_set(ps_operator_run *run, int32_t input, const void *content, size_t n_bytes, char *error,
                                 size_t error_bytes) {
    if (input != PS_OPERATOR_ACTIVATIONS || n_bytes != sizeof run->given) {
        return failed(error, error_bytes, "expected one number");
    }
    memcpy(&run->given, content, n_bytes);
    return 0;
}

EXPORTED int32_t ps_operator_clear(ps_operator_run *run, char *error, size_t error_bytes) {
    for (size_t at = 0; at < sizeof run->output / sizeof *run->output; at++) {
        run->output[at] = NAN;
    }
    return 0;
}

/* The first time takes long. */
EXPORTED int32_t ps_operator_compute(ps_operator_run *run, int32_t n_copies, int64_t *elapsed_ns, char *error,
                                     size_t error_bytes) {
    run->output[0] = run->given;
    *elapsed_ns = run->n_computed++ ? 1000 * n_copies : 1000000;
    return 0;
}

EXPORTED size_t ps_operator_output_values(const ps_operator_run *run) {
    return sizeof run->output / sizeof *run->output;
}

EXPORTED int32_t ps_operator_read(const ps_operator_run *run, float *values, size_t n_values, char *error,
                                  size_t error_bytes) {
    if (n_values != ps_operator_output_values(run)) {
        return failed(error, error_bytes, "another number of values");
    }
    memcpy(values, run->output, sizeof run->output);
    return 0;
}

EXPORTED void ps_operator_close(ps_operator_run *run) {
    run->device->n_open--;
    free(run);
}
