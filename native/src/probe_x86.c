/* Loops for x86-64 with AVX2, AVX-512 and their dot product extensions. */
#include "probe_kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define PS_TARGET(features) __attribute__((target(features)))

/* Read by ourselves: compilers differ in the names that __builtin_cpu_supports knows. */
enum { PS_EAX = 0, PS_EBX = 1, PS_ECX = 2 };

static bool ps_has_bit(unsigned int leaf, unsigned int subleaf, int place, int bit) {
    unsigned int words[4];
    return __get_cpuid_count(leaf, subleaf, &words[0], &words[1], &words[2], &words[3]) &&
           (words[place] >> bit & 1u) != 0;
}

/* Whether the system saves these registers when it switches threads (XCR0: 6 for ymm, 0xe6 for zmm). */
static bool ps_is_saved(unsigned int registers) {
    if (!ps_has_bit(1, 0, PS_ECX, 27)) {
        return false;
    }
    unsigned int low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & registers) == registers;
}

static bool ps_has_avx2(void) {
    return ps_is_saved(0x6) && ps_has_bit(1, 0, PS_ECX, 12) && ps_has_bit(7, 0, PS_EBX, 5);
}

static bool ps_has_avx512(void) {
    return ps_is_saved(0xe6) && ps_has_bit(7, 0, PS_EBX, 16) && ps_has_bit(7, 0, PS_EBX, 30);
}

static bool ps_has_avx512vnni(void) {
    return ps_has_avx512() && ps_has_bit(7, 0, PS_ECX, 11);
}

#define PS_STREAM(pattern) ps_##pattern##_avx512
#define PS_STREAM_TARGET PS_TARGET("avx512f")
#define PS_STREAM_BYTES 64
#include "probe_stream.h"

#define PS_STREAM(pattern) ps_##pattern##_avx2
#define PS_STREAM_TARGET PS_TARGET("avx2,fma")
#define PS_STREAM_BYTES 32
#include "probe_stream.h"

const ps_stream_kernel ps_native_streams[] = {
    {"avx512f", ps_has_avx512, {ps_read_avx512, ps_copy_avx512, ps_triad_avx512}},
    {"avx2", ps_has_avx2, {ps_read_avx2, ps_copy_avx2, ps_triad_avx2}},
    {NULL, NULL, {NULL, NULL, NULL}},
};

PS_DEFINE_COMPUTE(ps_fp32_avx512, PS_TARGET("avx512f"), __m512, __m512, 12, _mm512_setzero_ps(), _mm512_set1_ps(0.5f),
                  _mm512_set1_ps(1.0f), _mm512_fmadd_ps(acc, x, y))

PS_DEFINE_COMPUTE(ps_fp32_avx2, PS_TARGET("avx2,fma"), __m256, __m256, 12, _mm256_setzero_ps(), _mm256_set1_ps(0.5f),
                  _mm256_set1_ps(1.0f), _mm256_fmadd_ps(acc, x, y))

PS_DEFINE_COMPUTE(ps_int8_avx512vnni, PS_TARGET("avx512f,avx512vnni"), __m512i, __m512i, 12, _mm512_setzero_si512(),
                  _mm512_set1_epi8(3), _mm512_set1_epi8(-5), _mm512_dpbusd_epi32(acc, x, y))

/* Without VNNI a dot product is three instructions: bytes to pairs of 16 bits, pairs to 32 bits, and the sum. */
PS_DEFINE_COMPUTE(ps_int8_avx512bw, PS_TARGET("avx512f,avx512bw"), __m512i, __m512i, 12, _mm512_setzero_si512(),
                  _mm512_set1_epi8(3), _mm512_set1_epi8(-5),
                  _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(x, y), _mm512_set1_epi16(1))))

PS_DEFINE_COMPUTE(ps_int8_avx2, PS_TARGET("avx2"), __m256i, __m256i, 12, _mm256_setzero_si256(), _mm256_set1_epi8(3),
                  _mm256_set1_epi8(-5),
                  _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), _mm256_set1_epi16(1))))

#if (defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11)
#define PS_HAVE_AVXVNNI
static bool ps_has_avxvnni(void) {
    return ps_has_avx2() && ps_has_bit(7, 1, PS_EAX, 4);
}

PS_DEFINE_COMPUTE(ps_int8_avxvnni, PS_TARGET("avx2,avxvnni"), __m256i, __m256i, 12, _mm256_setzero_si256(),
                  _mm256_set1_epi8(3), _mm256_set1_epi8(-5), _mm256_dpbusd_avx_epi32(acc, x, y))
#endif

#if defined(__clang__) || __GNUC__ >= 10
#define PS_HAVE_AVX512BF16
static bool ps_has_avx512bf16(void) {
    return ps_has_avx512() && ps_has_bit(7, 1, PS_EAX, 5);
}

PS_DEFINE_COMPUTE(ps_f16_avx512bf16, PS_TARGET("avx512f,avx512bw,avx512bf16"), __m512, __m512bh, 12,
                  _mm512_setzero_ps(), _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f)),
                  _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0f), _mm512_set1_ps(1.0f)), _mm512_dpbf16_ps(acc, x, y))
#endif

const ps_compute_kernel ps_native_computes[] = {
    {"avx512f", ps_has_avx512, PS_FP32, 12 * 16 * 2.0, ps_fp32_avx512},
    {"fma", ps_has_avx2, PS_FP32, 12 * 8 * 2.0, ps_fp32_avx2},
    {"avx512vnni", ps_has_avx512vnni, PS_INT8, 12 * 64 * 2.0, ps_int8_avx512vnni},
    {"avx512bw", ps_has_avx512, PS_INT8, 12 * 64 * 2.0, ps_int8_avx512bw},
#if defined(PS_HAVE_AVXVNNI)
    {"avxvnni", ps_has_avxvnni, PS_INT8, 12 * 32 * 2.0, ps_int8_avxvnni},
#endif
    {"avx2", ps_has_avx2, PS_INT8, 12 * 32 * 2.0, ps_int8_avx2},
#if defined(PS_HAVE_AVX512BF16)
    {"avx512bf16", ps_has_avx512bf16, PS_F16, 12 * 32 * 2.0, ps_f16_avx512bf16},
#endif
    {NULL, NULL, 0, 0, NULL},
};

#endif
