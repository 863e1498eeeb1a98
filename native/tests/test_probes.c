#include <string.h>

#include "check.h"
#include "perfsuite/probe.h"
#include "probe_kernels.h"

enum { N_BYTES = 3 * PS_STREAM_STEP, N_FLOATS = N_BYTES / 4, N_WORDS = N_BYTES / 8 };

/* Arrays with a guard behind each, which no loop may write. */
typedef struct arrays {
    _Alignas(64) float a[N_FLOATS + 16];
    _Alignas(64) float b[N_FLOATS + 16];
    _Alignas(64) float c[N_FLOATS + 16];
} arrays;

static void fill(arrays *all) {
    for (int i = 0; i < N_FLOATS + 16; i++) {
        all->a[i] = -1.0f;
        all->b[i] = (float)i;
        all->c[i] = (float)(3 * i + 1);
    }
}

static uint64_t words_xored(const void *from) {
    uint64_t words[N_WORDS];
    uint64_t sum = 0;
    memcpy(words, from, N_BYTES);
    for (int i = 0; i < N_WORDS; i++) {
        sum ^= words[i];
    }
    return sum;
}

static void check_stream(const ps_stream_kernel *kernel) {
    arrays all;
    fill(&all);
    CHECK(kernel->by_pattern[PS_READ](all.b, NULL, NULL, N_BYTES) == words_xored(all.b));
    kernel->by_pattern[PS_COPY](all.a, all.b, NULL, N_BYTES);
    CHECK(memcmp(all.a, all.b, N_BYTES) == 0);
    kernel->by_pattern[PS_TRIAD](all.a, all.b, all.c, N_BYTES);
    for (int i = 0; i < N_FLOATS; i++) {
        CHECK(all.a[i] == all.b[i] + PS_TRIAD_FACTOR * all.c[i]);
    }
    CHECK(all.a[N_FLOATS] == -1.0f);
}

TEST(every_width_streams_every_byte) {
    int n = 0;
    for (; ps_supported_stream(n) != NULL; n++) {
        check_stream(ps_supported_stream(n));
    }
    CHECK(n >= 1);
}

/* After so many iterations every lane has what its instructions stand for. */
enum { N_ITERATIONS = 10 };

/* Of bytes: so many products of 3 and -5 a lane and iteration; without such instructions 3 * lane + 5 in 16 bits. */
static bool has_sums_of_bytes(const char *path, const void *first) {
    int32_t lane;
    uint16_t expected = 0, wrapped;
    memcpy(&lane, first, sizeof(lane));
    memcpy(&wrapped, first, sizeof(wrapped));
    if (strcmp(path, "portable") == 0) {
        for (int i = 0; i < N_ITERATIONS; i++) {
            expected = (uint16_t)(3 * expected + 5);
        }
        return wrapped == expected;
    }
    int n_products = strcmp(path, "neon") == 0 ? 2 : strcmp(path, "i8mm") == 0 ? 8 : 4;
    return lane == N_ITERATIONS * n_products * 3 * -5;
}

/* Of 32 and of 16 bits: lane / 2 + 1, or lane + 1 / 2 on Arm, but for those that add several products to a lane. */
static bool has_sums_of_floats(const char *path, const void *first) {
    float lane;
    uint16_t half;
    memcpy(&lane, first, sizeof(lane));
    memcpy(&half, first, sizeof(half));
    if (strcmp(path, "fp16") == 0) {
        return half == 0x4500; /* 5 */
    }
    if (strcmp(path, "bf16mm") == 0) {
        return lane == N_ITERATIONS * 4 * 1.0078125f * 1.0078125f;
    }
    if (strcmp(path, "avx512bf16") == 0) {
        return lane == N_ITERATIONS * 2 * 0.5f;
    }
    return lane == (strcmp(path, "neon") == 0 ? N_ITERATIONS * 0.5f : 2.0f - 2.0f / (1 << N_ITERATIONS));
}

TEST(every_instruction_set_computes) {
    for (int type = PS_FP32; type <= PS_F16; type++) {
        for (int i = 0; ps_supported_compute(type, i) != NULL; i++) {
            const ps_compute_kernel *kernel = ps_supported_compute(type, i);
            char first[PS_ACCUMULATOR_BYTES] = {0};
            kernel->run(N_ITERATIONS, first);
            CHECK(type == PS_INT8 ? has_sums_of_bytes(kernel->path, first) : has_sums_of_floats(kernel->path, first));
            CHECK(kernel->flops_per_iteration > 0);
        }
    }
    CHECK(ps_supported_compute(PS_FP32, 0) != NULL && ps_supported_compute(PS_INT8, 0) != NULL);
}

static void check_rate(const ps_rate *rate) {
    CHECK(rate->repetitions >= 1);
    CHECK(rate->median_per_s > 0 && rate->best_per_s >= rate->median_per_s);
}

TEST(probes_of_one_to_eight_threads) {
    for (int n_threads = 1; n_threads <= 8; n_threads++) {
        ps_probe_setup setup = {.n_threads = n_threads, .pinned = n_threads % 2, .budget_ms = 4};
        ps_bandwidth bandwidth;
        CHECK(ps_probe_bandwidth(&setup, 1 << 18, &bandwidth) == PS_OK);
        check_rate(&bandwidth.read);
        check_rate(&bandwidth.copy);
        check_rate(&bandwidth.triad);
        ps_latency latency;
        CHECK(ps_probe_dispatch(&setup, &latency) == PS_OK);
        CHECK(latency.best_ns > 0 && latency.median_ns >= latency.best_ns && latency.repetitions >= 1);
    }
}

TEST(peaks_of_every_type) {
    ps_probe_setup setup = {.n_threads = 2, .budget_ms = 10};
    for (int type = PS_FP32; type <= PS_F16; type++) {
        ps_rate rate;
        int status = ps_probe_compute(&setup, type, &rate);
        CHECK(status == PS_OK || (type == PS_F16 && status == PS_UNSUPPORTED));
        if (status == PS_OK) {
            check_rate(&rate);
        }
    }
}

TEST(the_smallest_working_set_is_a_step_for_each_array_and_thread) {
    ps_probe_setup setup = {.n_threads = 2, .budget_ms = 1};
    ps_bandwidth bandwidth;
    CHECK(ps_probe_bandwidth(&setup, 6 * PS_STREAM_STEP, &bandwidth) == PS_OK);
    CHECK(ps_probe_bandwidth(&setup, 6 * PS_STREAM_STEP - 1, &bandwidth) == PS_BAD_ARGUMENT);
}

static void check_refused(ps_probe_setup setup) {
    ps_bandwidth bandwidth;
    ps_rate rate;
    ps_latency latency;
    CHECK(ps_probe_bandwidth(&setup, 1 << 20, &bandwidth) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_compute(&setup, PS_FP32, &rate) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_dispatch(&setup, &latency) == PS_BAD_ARGUMENT);
}

TEST(bad_setups_are_refused) {
    check_refused((ps_probe_setup){.n_threads = 0, .budget_ms = 1});
    check_refused((ps_probe_setup){.n_threads = -3, .budget_ms = 1});
    check_refused((ps_probe_setup){.n_threads = 1025, .budget_ms = 1});
    check_refused((ps_probe_setup){.n_threads = 1, .budget_ms = 0});
    check_refused((ps_probe_setup){.n_threads = 1, .budget_ms = 600001});
}

TEST(bad_arguments_are_refused) {
    ps_probe_setup setup = {.n_threads = 1, .budget_ms = 1};
    ps_bandwidth bandwidth;
    ps_rate rate;
    ps_latency latency;
    CHECK(ps_probe_bandwidth(NULL, 1 << 20, &bandwidth) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_bandwidth(&setup, 1 << 20, NULL) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_bandwidth(&setup, 0, &bandwidth) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_bandwidth(&setup, INT64_MIN, &bandwidth) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_compute(NULL, PS_FP32, &rate) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_compute(&setup, PS_F16 + 1, &rate) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_compute(&setup, -1, &rate) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_compute(&setup, PS_FP32, NULL) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_dispatch(NULL, &latency) == PS_BAD_ARGUMENT);
    CHECK(ps_probe_dispatch(&setup, NULL) == PS_BAD_ARGUMENT);
}

TEST(memory_that_does_not_exist_is_refused) {
    ps_probe_setup setup = {.n_threads = 1, .budget_ms = 1};
    ps_bandwidth bandwidth;
    CHECK(ps_probe_bandwidth(&setup, INT64_MAX, &bandwidth) == PS_NO_MEMORY);
}

TEST(every_status_has_words_of_its_own) {
    for (int status = PS_OK; status <= PS_UNSUPPORTED; status++) {
        for (int other = status + 1; other <= PS_UNSUPPORTED + 1; other++) {
            CHECK(strcmp(ps_status_text(status), ps_status_text(other)) != 0);
        }
    }
}
