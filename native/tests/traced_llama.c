/* A program that runs llama.cpp and knows nothing of any recorder: `traced_llama MODEL THREADS` loads a model, says
 * `ready`, and for each line on its input decodes: `N` tokens one by one, or with `p` before it a prompt of N tokens.
 * `x` executes the program anew in its place.  It forgets what came before where that would not fit into the context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "llama.h"

enum { CONTEXT = 1024, LINE_BYTES = 64 };

static void say_nothing(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)text;
    (void)user;
}

static int decode(struct llama_context *context, int n_tokens) {
    static int n_used;
    llama_token tokens[CONTEXT];
    if (n_used + n_tokens > CONTEXT) {
        llama_memory_clear(llama_get_memory(context), false);
        n_used = 0;
    }
    n_used += n_tokens;
    for (int i = 0; i < n_tokens; i++) {
        tokens[i] = 1 + i % 100;
    }
    return llama_decode(context, llama_batch_get_one(tokens, n_tokens));
}

static int follow(struct llama_context *context, const char *line) {
    int n = atoi(line[0] == 'p' ? line + 1 : line), failed = 0;
    if (n < 0 || n > CONTEXT) {
        return 1;
    }
    if (line[0] == 'p') {
        return decode(context, n);
    }
    for (int i = 0; i < n && !failed; i++) {
        failed = decode(context, 1);
    }
    return failed;
}

int main(int argc, char **argv) {
    char line[LINE_BYTES];
    llama_log_set(say_nothing, NULL);
    llama_backend_init();
    struct llama_model *model = argc == 3 ? llama_model_load_from_file(argv[1], llama_model_default_params()) : NULL;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = CONTEXT;
    params.n_threads = params.n_threads_batch = argc == 3 ? atoi(argv[2]) : 1;
    struct llama_context *context = model ? llama_init_from_model(model, params) : NULL;
    if (!context || decode(context, 1)) {
        return EXIT_FAILURE;
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (line[0] == 'x') {
            execv("/proc/self/exe", argv);
        }
        if (follow(context, line)) {
            return EXIT_FAILURE;
        }
        printf("done\n");
        fflush(stdout);
    }
    llama_free(context);
    llama_model_free(model);
    return EXIT_SUCCESS;
}
