/* Interposes ggml_cpu_extra_compute_forward, which the CPU backend calls first for every operator on every thread.
 *
 * The dynamic loader finds this definition before ggml's own, because the library that holds it is loaded before
 * libggml-cpu, either by the worker or by LD_PRELOAD.  The first two members of ggml_compute_params are the thread's
 * number and the number of threads; nothing else of that private struct is read.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

struct ggml_tensor;

struct ggml_compute_params {
    int ith, nth;
};

typedef bool (*compute_forward)(struct ggml_compute_params *, struct ggml_tensor *);

void ps_recorder_entry(int ith, const struct ggml_tensor *tensor);

static compute_forward next_compute_forward;

static compute_forward find_next(void) {
    void *library = dlopen("libggml-cpu.so.0", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "ggml_cpu_extra_compute_forward")
                           : dlsym(RTLD_NEXT, "ggml_cpu_extra_compute_forward");
    return (compute_forward)symbol;
}

/* Resolves ggml's own function ahead of time; false when the loaded CPU backend has none. */
bool ps_entry_resolve(void) {
    if (!next_compute_forward) {
        next_compute_forward = find_next();
    }
    return next_compute_forward != NULL;
}

bool ggml_cpu_extra_compute_forward(struct ggml_compute_params *params, struct ggml_tensor *op) {
    ps_recorder_entry(params->ith, op);
    if (!next_compute_forward && !ps_entry_resolve()) {
        return false;
    }
    return next_compute_forward(params, op);
}
