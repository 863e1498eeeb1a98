/* The inner loops of the probes, one set per instruction set, chosen at run time. */
#ifndef PERFSUITE_PROBE_KERNELS_H
#define PERFSUITE_PROBE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "perfsuite/probe.h"

/* Arrays are aligned to it, and their sizes are multiples of it: 8 vectors of the widest kind. */
#define PS_STREAM_STEP 512

/* The triad's factor: exact in binary, so that fused and unfused loops agree. */
#define PS_TRIAD_FACTOR 0.5f

enum ps_pattern { PS_READ = 0, PS_COPY = 1, PS_TRIAD = 2, PS_N_PATTERNS = 3 };

/* One pass of a pattern over arrays of n_bytes each, of which it uses 1, 2 or 3.  A read returns the exclusive or of
 * all 64-bit words. */
typedef uint64_t (*ps_stream)(void *a, const void *b, const void *c, size_t n_bytes);

typedef struct ps_stream_kernel {
    const char *path; /* the instructions that it uses */
    bool (*is_supported)(void);
    ps_stream by_pattern[PS_N_PATTERNS];
} ps_stream_kernel;

enum { PS_ACCUMULATOR_BYTES = 64 };

typedef struct ps_compute_kernel {
    const char *path; /* the instructions that it uses */
    bool (*is_supported)(void);
    int type; /* ps_type */
    double flops_per_iteration;
    void (*run)(int64_t iterations, void *first); /* leaves the first accumulator there, PS_ACCUMULATOR_BYTES at most */
} ps_compute_kernel;

/* Each table ends with an entry whose path is NULL. */
extern const ps_stream_kernel ps_native_streams[]; /* widest first */
extern const ps_stream_kernel ps_portable_streams[];
extern const ps_compute_kernel ps_native_computes[];
extern const ps_compute_kernel ps_portable_computes[];

/* The index-th kernel (of a type) that this processor supports, native ones first; NULL beyond the last. */
const ps_stream_kernel *ps_supported_stream(int index);
const ps_compute_kernel *ps_supported_compute(int type, int index);

bool ps_always_supported(void);

/* Tell the compiler that a vector register is read and written here: nothing about it can be folded or dropped. */
#if defined(__x86_64__)
#define PS_TOUCH(vector) __asm__ volatile("" : "+v"(vector))
#elif defined(__aarch64__)
#define PS_TOUCH(vector) __asm__ volatile("" : "+w"(vector))
#else
#define PS_TOUCH(vector) __asm__ volatile("" : "+m"(vector))
#endif

/* Define `name`, which runs `step` on `n_accumulators` independent accumulators, more than latency times units, so
 * that throughput alone bounds it.  `step` names the accumulator `acc` and the operands `x` and `y`. */
#define PS_DEFINE_COMPUTE(name, attributes, accumulator, operand, n_accumulators, zero, x_value, y_value, step) \
    attributes static void name(int64_t iterations, void *first) {                                              \
        accumulator accs[n_accumulators];                                                                       \
        operand x = (x_value);                                                                                  \
        operand y = (y_value);                                                                                  \
        PS_TOUCH(x);                                                                                            \
        PS_TOUCH(y);                                                                                            \
        for (int k = 0; k < (n_accumulators); k++) {                                                            \
            accs[k] = (zero);                                                                                   \
        }                                                                                                       \
        for (int64_t i = 0; i < iterations; i++) {                                                              \
            _Pragma("GCC unroll 32") for (int k = 0; k < (n_accumulators); k++) {                               \
                accumulator acc = accs[k];                                                                      \
                PS_TOUCH(x); /* or a product of x and y alone would be taken out of the loop */                 \
                acc = (step);                                                                                   \
                PS_TOUCH(acc);                                                                                  \
                accs[k] = acc;                                                                                  \
            }                                                                                                   \
        }                                                                                                       \
        __builtin_memcpy(first, &accs[0], sizeof(accs[0]));                                                     \
    }

#endif
