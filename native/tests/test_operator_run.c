/* Operators of the installed ggml, on its CPU backend and one thread. */

#include <math.h>
#include <string.h>

#include "check.h"
#include "perfsuite/operator_run.h"

enum { MOST_VALUES = 512, N_ERROR = 256 };

static char error[N_ERROR];

static ps_operator_device *device;
static ps_operator_run *run;

static ps_operator_spec product(int64_t n_inner, int64_t n_outer, int64_t n_tokens) {
    return (ps_operator_spec){
        .op = "MUL_MAT", .type = "f32", .n_inner = n_inner, .n_outer = n_outer, .n_tokens = n_tokens};
}

static ps_operator_spec attention(int64_t head, int64_t n_heads, int64_t n_kv_heads, int64_t context) {
    return (ps_operator_spec){.op = "FLASH_ATTN_EXT",
                              .type = "f32",
                              .n_inner = head,
                              .n_heads = n_heads,
                              .n_kv_heads = n_kv_heads,
                              .n_tokens = 1,
                              .n_past = context - 1};
}

/* Opens the processor, and an operator on it in the place of the last test's. */
static void begin(ps_operator_spec spec) {
    if (!device) {
        CHECK(ps_operator_device_open("CPU", NULL, 1, &device, error, sizeof error) == 0);
        CHECK(strlen(ps_operator_device_name(device)) > 0);
    }
    ps_operator_close(run);
    CHECK(ps_operator_check(device, &spec, error, sizeof error) == 0);
    CHECK(ps_operator_open(device, &spec, &run, error, sizeof error) == 0);
}

static void set(ps_operator_input input, const float *values, size_t n_values) {
    CHECK(ps_operator_set(run, input, values, n_values * sizeof *values, error, sizeof error) == 0);
}

/* Computes and reads; the guard must be as it was. */
static const float *output(int32_t n_copies) {
    static float values[MOST_VALUES];
    const size_t n_values = ps_operator_output_values(run);
    int64_t elapsed_ns = -1;
    CHECK(n_values <= MOST_VALUES);
    CHECK(ps_operator_clear(run, error, sizeof error) == 0);
    CHECK(ps_operator_compute(run, n_copies, &elapsed_ns, error, sizeof error) == 0 && elapsed_ns >= 0);
    CHECK(ps_operator_read(run, values, n_values, error, sizeof error) == 0);
    for (size_t i = n_values - PS_OPERATOR_GUARD_VALUES; i < n_values; i++) {
        CHECK(isnan(values[i]));
    }
    return values;
}

static void refused(int32_t status, const char *why) {
    CHECK(status < 0);
    CHECK(strstr(error, why) != NULL);
    CHECK(strchr(error, '\n') == NULL);
}

TEST(a_product_is_what_it_should_be) {
    const float weights[] = {1, 2, 3, 4, 5, 6}, activations[] = {1, 0, -1, 2, 2, 2};
    const float expected[] = {-2, -2, 12, 30}; /* two rows of weights for each of two tokens */
    begin(product(3, 2, 2));
    set(PS_OPERATOR_STORED, weights, 6);
    set(PS_OPERATOR_ACTIVATIONS, activations, 6);
    for (int32_t n_copies = 1; n_copies <= 3; n_copies++) {
        CHECK(memcmp(output(n_copies), expected, sizeof expected) == 0);
    }
}

TEST(heads_have_products_of_their_own) {
    const float keys[] = {1, 2, 3, 10, 20, 30}, queries[] = {2, 3};
    const float expected[] = {2, 4, 6, 30, 60, 90};
    ps_operator_spec spec = product(1, 3, 1);
    spec.n_heads = spec.n_kv_heads = 2;
    begin(spec);
    set(PS_OPERATOR_STORED, keys, 6);
    set(PS_OPERATOR_ACTIVATIONS, queries, 2);
    CHECK(memcmp(output(1), expected, sizeof expected) == 0);
}

/* Equal scores mix all positions alike; heads in succession share a head of the cache. */
TEST(attention_sees_every_position) {
    const float keys[12] = {0}, queries[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const float values[] = {1, 2, 10, 20, 4, 5, 40, 50, 7, 8, 70, 80}; /* by position, then by head */
    const float expected[] = {4, 5, 4, 5, 40, 50, 40, 50};
    begin(attention(2, 4, 2, 3));
    set(PS_OPERATOR_STORED, keys, 12);
    set(PS_OPERATOR_ACTIVATIONS, queries, 8);
    set(PS_OPERATOR_VALUES, values, 12);
    const float *out = output(2);
    for (int i = 0; i < 8; i++) {
        CHECK(fabsf(out[i] - expected[i]) <= 1e-5f * expected[i]);
    }
}

TEST(what_ggml_cannot_compute_is_refused) {
    ps_operator_spec spec = product(33, 2, 2);
    spec.type = "q8_0";
    refused(ps_operator_check(device, &spec, error, sizeof error), "rows of 33 values; expected whole blocks of 32");
    spec.type = "q9_9";
    refused(ps_operator_check(device, &spec, error, sizeof error), "no ggml type is called 'q9_9'");
    spec = product(0, 2, 2);
    refused(ps_operator_check(device, &spec, error, sizeof error), "a size of 0");
    spec = product(INT64_C(1) << 40, 2, 2);
    refused(ps_operator_check(device, &spec, error, sizeof error), "a size of 1099511627776");
    spec = attention(2, 3, 2, 1);
    refused(ps_operator_check(device, &spec, error, sizeof error), "3 heads; expected a multiple of 2");
    spec.op = "ROPE";
    ps_operator_run *none = NULL;
    refused(ps_operator_open(device, &spec, &none, error, sizeof error), "the operator ROPE cannot be run alone");
    CHECK(none == NULL);
}

TEST(contents_of_other_sizes_are_refused) {
    const float values[6] = {0};
    float out[MOST_VALUES];
    int64_t elapsed_ns = 0;
    begin(product(3, 2, 1));
    refused(ps_operator_set(run, PS_OPERATOR_STORED, values, 20, error, sizeof error), "of 20 bytes; expected 24");
    refused(ps_operator_set(run, PS_OPERATOR_VALUES, values, 24, error, sizeof error), "expected another");
    refused(ps_operator_set(run, -1, values, 24, error, sizeof error), "input -1");
    refused(ps_operator_read(run, out, 2, error, sizeof error), "an output of 2 values; expected 66");
    refused(ps_operator_compute(run, 0, &elapsed_ns, error, sizeof error), "0 copies");
}

TEST(a_backend_that_is_not_there_is_told) {
    ps_operator_device *none = NULL;
    refused(ps_operator_device_open("Abacus", NULL, 1, &none, error, sizeof error), "no device for the backend");
    refused(ps_operator_device_open("CPU", "/no/such.so", 1, &none, error, sizeof error), "/no/such.so: ggml");
    CHECK(none == NULL);
}

TEST(what_was_opened_is_closed) {
    ps_operator_close(run);
    ps_operator_device_close(device);
}
