/* Stands in for the engine library's operators: three samples, the largest of which is what the parameters spread over. */
#include <string.h>

#include "perfsuite/operator_bench.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int32_t ps_operator_bench(const ps_operator_spec *spec, int32_t n_threads, int64_t budget_ns, double *samples_ns,
                                   int32_t max_samples, int32_t *n_samples, char *error, size_t error_bytes) {
    (void)budget_ns;
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
