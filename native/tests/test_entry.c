/* The functions that stand before ggml's, with stand-ins for ggml's in a library behind this program. */
#include "check.h"
#include "fake_ggml.h"
#include "interposed.h"

/* ---- instead of the recorder -------------------------------------------------------------------------------------- */

uint32_t ps_watching;

static struct {
    int n_entries, n_arrivals, n_begun, n_ended, n_followed;
    int thread;
    const void *tensor;
} seen;

void ps_recorder_entry(int ith, const struct ggml_tensor *tensor) {
    seen.n_entries++;
    seen.thread = ith;
    seen.tensor = tensor;
}
void ps_recorder_arrival(void) { seen.n_arrivals++; }
void ps_recorder_split_begin(struct ggml_backend *backend, struct ggml_cgraph *graph) {
    CHECK(backend && graph && seen.n_begun == seen.n_ended);
    seen.n_begun++;
}
void ps_recorder_split_end(void) { seen.n_ended++; }
void ps_recorder_follow(struct ggml_backend *backend) { seen.n_followed += backend != NULL; }

static void watch(uint32_t bits) {
    ps_watching = bits;
    seen.n_entries = seen.n_arrivals = seen.n_begun = seen.n_ended = seen.n_followed = 0;
}

/* ---- what it hears ------------------------------------------------------------------------------------------------ */

static int split, an_operator, norm, mul; /* no more than addresses */

static void compute(int thread) {
    fake_calls before = fake_ggml_calls();
    CHECK(fake_ggml_compute(thread, &split, &an_operator, &norm, &mul) == 17);
    fake_calls after = fake_ggml_calls();
    CHECK(after.n_forward == before.n_forward + 1 && after.n_fused == before.n_fused + 1);
    CHECK(after.n_barriers == before.n_barriers + 2 && after.n_graphs == before.n_graphs + 1);
}

TEST(ggml_does_its_work_whoever_watches) {
    for (uint32_t bits = 0; bits < 16; bits++) {
        watch(bits);
        compute(0);
    }
}

TEST(nothing_is_heard_while_nobody_watches) {
    watch(0);
    compute(3);
    CHECK(!seen.n_entries && !seen.n_arrivals && !seen.n_begun && !seen.n_ended && !seen.n_followed);
}

TEST(entries_and_arrivals_of_threads) {
    watch(PS_WATCH_THREADS);
    compute(3);
    CHECK(seen.n_entries == 2 && seen.n_arrivals == 2 && !seen.n_begun);
    CHECK(seen.thread == 3 && seen.tensor == (const void *)&norm); /* of the fused pair, which comes last, the first */
}

TEST(the_first_entry_comes_without_arrivals) {
    watch(PS_WATCH_FIRST_ENTRY);
    compute(0);
    CHECK(seen.n_entries == 2 && !seen.n_arrivals && !seen.n_begun);
}

TEST(splits_begin_and_end) {
    watch(PS_WATCH_SPLITS);
    compute(0);
    CHECK(seen.n_begun == 1 && seen.n_ended == 1 && !seen.n_entries && !seen.n_arrivals);
}

TEST(a_backend_is_followed_before_it_computes) {
    watch(PS_WATCH_BACKENDS);
    compute(0);
    CHECK(seen.n_followed == 1 && !seen.n_begun && !seen.n_entries && !seen.n_arrivals);
}
