// A model and its context as a run's options say, and the engine's own complaint where there are none.

#ifndef PERFSUITE_ENGINE_LOADING_H
#define PERFSUITE_ENGINE_LOADING_H

#include <memory>
#include <string>

#include "failure.h"
#include "llama.h"
#include "perfsuite/driver.h"

namespace perfsuite {

struct model_deleter {
    void operator()(llama_model *model) const { llama_model_free(model); }
};
struct context_deleter {
    void operator()(llama_context *context) const { llama_free(context); }
};

using model_ptr = std::unique_ptr<llama_model, model_deleter>;
using context_ptr = std::unique_ptr<llama_context, context_deleter>;

// Keeps the engine's own last complaint for the next failure; one of ggml's callbacks for logs.
void keep_complaint(ggml_log_level level, const char *text, void *);

// Raises `failure`, with what the engine complained of last.
[[noreturn]] void fail(const std::string &what);

// Raises `failure`, with both figures, where the file is larger than the memory that is available.  From then on the process
// is handed out no more of its own than that, so that a cache that does not fit is the engine's own error.
void guard_memory(const char *gguf_path);

// A model without its weights computes nothing: it only says its graphs.
model_ptr load(const ps_options &options, bool reads_weights = true);

// The adapter that the options name is applied; the hooks are those of the recorder, where there is one.
context_ptr open_context(llama_model *model, const ps_options &options, ps_recorder *recorder);

} // namespace perfsuite

#endif
