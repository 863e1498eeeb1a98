/* Loops for any processor: vectors of 16 bytes, which are SSE2 on x86-64 and NEON on aarch64. */
#include "probe_kernels.h"

#define PS_STREAM(pattern) ps_##pattern##_portable
#define PS_STREAM_TARGET
#define PS_STREAM_BYTES 16
#include "probe_stream.h"

const ps_stream_kernel ps_portable_streams[] = {
    {"portable", ps_always_supported, {ps_read_portable, ps_copy_portable, ps_triad_portable}},
    {NULL, NULL, {NULL, NULL, NULL}},
};

typedef float ps_float4 __attribute__((vector_size(16)));
typedef uint16_t ps_short8 __attribute__((vector_size(16)));

#define PS_HALVES ((ps_float4){0.5f, 0.5f, 0.5f, 0.5f})
#define PS_ONES ((ps_float4){1.0f, 1.0f, 1.0f, 1.0f})
#define PS_THREES ((ps_short8){3, 3, 3, 3, 3, 3, 3, 3})
#define PS_FIVES ((ps_short8){5, 5, 5, 5, 5, 5, 5, 5})

PS_DEFINE_COMPUTE(ps_fp32_portable, , ps_float4, ps_float4, 12, (ps_float4){0}, PS_HALVES, PS_ONES, acc * x + y)

/* 16 bits are the least that baseline instruction sets multiply; unsigned, for these wrap. */
PS_DEFINE_COMPUTE(ps_int8_portable, , ps_short8, ps_short8, 12, (ps_short8){0}, PS_THREES, PS_FIVES, acc * x + y)

const ps_compute_kernel ps_portable_computes[] = {
    {"portable", ps_always_supported, PS_FP32, 12 * 4 * 2.0, ps_fp32_portable},
    {"portable", ps_always_supported, PS_INT8, 12 * 8 * 2.0, ps_int8_portable},
    {NULL, NULL, 0, 0, NULL},
};

#if !defined(__x86_64__) && !defined(__aarch64__)
const ps_stream_kernel ps_native_streams[] = {{NULL, NULL, {NULL, NULL, NULL}}};
const ps_compute_kernel ps_native_computes[] = {{NULL, NULL, 0, 0, NULL}};
#endif
