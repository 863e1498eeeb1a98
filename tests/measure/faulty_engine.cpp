/* An engine that misbehaves as FAULT says: these definitions come before llama.cpp's own, by LD_PRELOAD.
 *
 * Where FAULT_FROM is a number, calls of llama_decode before that one are llama.cpp's own.
 */
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

#include "llama.h"

namespace {

int n_decoded;

const char *variable(const char *name) {
    const char *text = std::getenv(name);
    return text ? text : "";
}

bool is_fault(const char *name) { return std::strcmp(variable("FAULT"), name) == 0; }

bool is_due() { return n_decoded >= std::atoi(variable("FAULT_FROM")); }

template <typename Function> Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/* So much to a descriptor, without the end of a line. */
void write_much(int descriptor, size_t n_bytes) {
    static char chunk[1 << 20];
    std::memset(chunk, 'x', sizeof chunk);
    for (size_t at = 0; at < n_bytes; at += sizeof chunk) {
        if (write(descriptor, chunk, sizeof chunk) < 0) {
            return;
        }
    }
}

void misbehave() {
    if (is_fault("abort")) {
        std::fprintf(stderr, "GGML_ASSERT(false) failed\n");
        std::abort();
    }
    if (is_fault("segv")) {
        raise(SIGSEGV);
    }
    if (is_fault("exit")) {
        std::exit(3);
    }
    if (is_fault("hang")) {
        for (;;) {
            pause();
        }
    }
    if (is_fault("stdout")) {
        std::printf("garbage \x01\xff without an end");
        std::fflush(stdout);
    }
    if (is_fault("closed")) {
        close(STDOUT_FILENO);
    }
    if (is_fault("stderr")) {
        write_much(STDERR_FILENO, static_cast<size_t>(std::atoi(variable("FAULT_MIB"))) << 20);
        std::fprintf(stderr, "\nlast words\n");
        std::abort();
    }
    if (is_fault("memory")) {
        for (;;) {
            std::memset(new char[1 << 24], 1, 1 << 24);
        }
    }
}

} // namespace

extern "C" {

__attribute__((visibility("default"))) int32_t llama_decode(llama_context *context, llama_batch batch) {
    static const auto own = next<int32_t (*)(llama_context *, llama_batch)>("llama_decode");
    const bool is_wrong = is_due();
    n_decoded++;
    if (is_wrong) {
        misbehave();
    }
    return is_wrong && is_fault("idle") ? 0 : is_wrong && is_fault("status") ? -3 : own(context, batch);
}

__attribute__((visibility("default"))) float *llama_get_logits_ith(llama_context *context, int32_t i) {
    static const auto own = next<float *(*)(llama_context *, int32_t)>("llama_get_logits_ith");
    float *logits = own(context, i);
    if (logits && is_fault("nan") && is_due()) {
        logits[0] = NAN;
    }
    return logits;
}

/* A graph that is planned and not computed. */
__attribute__((visibility("default"))) enum ggml_status ggml_backend_sched_graph_compute_async(ggml_backend_sched_t sched,
                                                                                           ggml_cgraph *graph) {
    static const auto own =
        next<enum ggml_status (*)(ggml_backend_sched_t, ggml_cgraph *)>("ggml_backend_sched_graph_compute_async");
    return is_fault("short") && is_due() ? GGML_STATUS_SUCCESS : own(sched, graph);
}

} // extern "C"
