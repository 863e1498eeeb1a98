#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "llama.h"
#include "perfsuite/call_trace.h"

void ps_phase_copy(float *to, const float *from, size_t n);
float ps_phase_softmax(float *values, size_t n);

enum { MOST = 1 << 18 };

static char path[] = "/tmp/perfsuite-phase-tracer-XXXXXX";
static ps_trace_header header;
static ps_traced_call calls[MOST];

__attribute__((constructor)) static void prepare(void) {
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0);
    CHECK(setenv("PERFSUITE_PHASE_TRACE", path, 1) == 0);
}

/* Runs a driver in a process of its own, whose end writes the trace; returns whether there is one. */
static int traced(void (*drive)(void)) {
    CHECK(unlink(path) == 0 || access(path, F_OK) != 0);
    pid_t child = fork();
    if (child == 0) {
        drive();
        exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    FILE *in = fopen(path, "rb");
    if (!in) {
        return 0;
    }
    CHECK(fread(&header, sizeof(header), 1, in) == 1);
    CHECK(strcmp(header.magic, PS_TRACE_MAGIC) == 0);
    CHECK(header.n_calls <= MOST);
    CHECK(fread(calls, sizeof(*calls), header.n_calls, in) == header.n_calls);
    CHECK(fgetc(in) == EOF);
    fclose(in);
    return 1;
}

static void drive_one_token(void) {
    float probabilities[4] = {0};
    struct llama_batch batch = {.n_tokens = 5};
    CHECK(llama_decode(NULL, batch) == 5);
    llama_synchronize(NULL);
    ps_phase_copy(probabilities, llama_get_logits_ith(NULL, 0), 4);
    probabilities[3] = 0.5f;
    CHECK(ps_phase_softmax(probabilities, 4) == 0.5f);
    CHECK(llama_sampler_sample(NULL, NULL, 0) == 7);
}

TEST(each_call_is_recorded_with_its_result_left_alone) {
    static const ps_traced_function expected[] = {PS_TRACED_GET_ROWS,   PS_TRACED_GRAPH,      PS_TRACED_DECODE,
                                                  PS_TRACED_SYNCHRONIZE, PS_TRACED_GET_LOGITS, PS_TRACED_COPY,
                                                  PS_TRACED_SOFTMAX,     PS_TRACED_SAMPLE};
    CHECK(traced(drive_one_token));
    CHECK(header.n_calls == sizeof(expected) / sizeof(*expected));
    CHECK(header.n_lost == 0);
    for (size_t i = 0; i < header.n_calls; i++) {
        CHECK(calls[i].function == (int32_t)expected[i]);
        CHECK(calls[i].count == (expected[i] == PS_TRACED_DECODE ? 5 : 0));
        CHECK(calls[i].entry_ns <= calls[i].exit_ns);
        CHECK(header.first.raw_ns <= calls[i].entry_ns && calls[i].exit_ns <= header.last.raw_ns);
        CHECK(i == 0 || calls[i - 1].exit_ns <= calls[i].exit_ns);
    }
    CHECK(calls[2].entry_ns <= calls[1].entry_ns && calls[1].entry_ns <= calls[0].entry_ns);
    CHECK(calls[1].exit_ns - calls[1].entry_ns >= 1000000);
}

static void drive_too_many(void) {
    for (int i = 0; i < (1 << 17) + 9; i++) {
        llama_synchronize(NULL);
    }
}

TEST(what_finds_no_room_is_counted) {
    CHECK(traced(drive_too_many));
    CHECK(header.n_calls == 1 << 17);
    CHECK(header.n_lost == 9);
}

static void drive_nothing(void) {}

TEST(a_process_without_calls_writes_nothing) { CHECK(!traced(drive_nothing)); }
