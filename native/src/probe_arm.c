/* Loops for aarch64: NEON and its dot product, matrix and half precision extensions. */
#include "probe_kernels.h"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <sys/auxv.h>

/* Bits of AT_HWCAP and AT_HWCAP2 (Linux, arch/arm64/include/uapi/asm/hwcap.h); older headers lack some. */
enum { PS_ASIMDHP = 10, PS_ASIMDDP = 20, PS_I8MM = 13, PS_BF16 = 14 };

static bool ps_has_fp16(void) {
    return (getauxval(AT_HWCAP) >> PS_ASIMDHP & 1u) != 0;
}

static bool ps_has_dotprod(void) {
    return (getauxval(AT_HWCAP) >> PS_ASIMDDP & 1u) != 0;
}

static bool ps_has_i8mm(void) {
    return (getauxval(AT_HWCAP2) >> PS_I8MM & 1u) != 0;
}

static bool ps_has_bf16(void) {
    return (getauxval(AT_HWCAP2) >> PS_BF16 & 1u) != 0;
}

/* 16-byte vectors are NEON already. */
const ps_stream_kernel ps_native_streams[] = {
    {NULL, NULL, {NULL, NULL, NULL}},
};

#define PS_TARGET(features) __attribute__((target(features)))

PS_DEFINE_COMPUTE(ps_fp32_neon, , float32x4_t, float32x4_t, 24, vdupq_n_f32(0.0f), vdupq_n_f32(0.5f),
                  vdupq_n_f32(1.0f), vfmaq_f32(acc, x, y))

PS_DEFINE_COMPUTE(ps_int8_neon, , int32x4_t, int8x8_t, 24, vdupq_n_s32(0), vdup_n_s8(3), vdup_n_s8(-5),
                  vpadalq_s16(acc, vmull_s8(x, y)))

/* Older clang hides the intrinsics below unless the whole file is compiled for them. */
#if !defined(__clang__) || __clang_major__ >= 16
#define PS_HAVE_EXTENSIONS

PS_DEFINE_COMPUTE(ps_int8_dotprod, PS_TARGET("arch=armv8.2-a+dotprod"), int32x4_t, int8x16_t, 24, vdupq_n_s32(0),
                  vdupq_n_s8(3), vdupq_n_s8(-5), vdotq_s32(acc, x, y))

PS_DEFINE_COMPUTE(ps_int8_i8mm, PS_TARGET("arch=armv8.2-a+i8mm"), int32x4_t, int8x16_t, 24, vdupq_n_s32(0),
                  vdupq_n_s8(3), vdupq_n_s8(-5), vmmlaq_s32(acc, x, y))

/* Not vfmaq_f16, which some clang accept only where the whole file is compiled for it. */
PS_TARGET("arch=armv8.2-a+fp16")
static inline float16x8_t ps_fused_f16(float16x8_t acc, float16x8_t x, float16x8_t y) {
    __asm__("fmla %0.8h, %1.8h, %2.8h" : "+w"(acc) : "w"(x), "w"(y));
    return acc;
}

PS_DEFINE_COMPUTE(ps_f16_fp16, PS_TARGET("arch=armv8.2-a+fp16"), float16x8_t, float16x8_t, 24, vdupq_n_f16(0),
                  vdupq_n_f16((float16_t)0.5f), vdupq_n_f16((float16_t)1.0f), ps_fused_f16(acc, x, y))

/* 1.0078125 twice: for a number that fmov encodes, gcc 12 emits a half precision fmov, which bf16 does not include. */
PS_DEFINE_COMPUTE(ps_f16_bf16, PS_TARGET("arch=armv8.2-a+bf16"), float32x4_t, bfloat16x8_t, 24, vdupq_n_f32(0.0f),
                  vreinterpretq_bf16_u16(vdupq_n_u16(0x3f81)), vreinterpretq_bf16_u16(vdupq_n_u16(0x3f81)),
                  vbfmmlaq_f32(acc, x, y))
#endif

const ps_compute_kernel ps_native_computes[] = {
    {"neon", ps_always_supported, PS_FP32, 24 * 4 * 2.0, ps_fp32_neon},
#if defined(PS_HAVE_EXTENSIONS)
    {"i8mm", ps_has_i8mm, PS_INT8, 24 * 32 * 2.0, ps_int8_i8mm},
    {"dotprod", ps_has_dotprod, PS_INT8, 24 * 16 * 2.0, ps_int8_dotprod},
    {"bf16mm", ps_has_bf16, PS_F16, 24 * 16 * 2.0, ps_f16_bf16},
    {"fp16", ps_has_fp16, PS_F16, 24 * 8 * 2.0, ps_f16_fp16},
#endif
    {"neon", ps_always_supported, PS_INT8, 24 * 8 * 2.0, ps_int8_neon},
    {NULL, NULL, 0, 0, NULL},
};

#endif
