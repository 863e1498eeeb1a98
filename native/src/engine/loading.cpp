// Opens a model and its context as the options say.

#include "loading.h"

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/resource.h>
#include <sys/stat.h>

#include "backends.h"
#include "release.h"

namespace perfsuite {

namespace {

std::string engine_log; // the engine's own last complaint, for error messages

ggml_type type_of(const char *name) {
    const ggml_type type = perfsuite::type_called(name);
    if (type == GGML_TYPE_COUNT) {
        fail(std::string("no ggml type is called '") + name + "'");
    }
    return type;
}

// An adapter belongs to the model, which frees it, and is loaded before the context, whose buffers it enlarges.
llama_adapter_lora *load_adapter(llama_model *model, const ps_options &options) {
    if (!options.lora_path) {
        return nullptr;
    }
    llama_adapter_lora *adapter = llama_adapter_lora_init(model, options.lora_path);
    if (!adapter) {
        fail(std::string(options.lora_path) + ": llama.cpp cannot load it as an adapter of " + options.gguf_path);
    }
    return adapter;
}

// What a process can have without swapping, as the kernel estimates it; 0 where it does not say.
uint64_t available_bytes() {
    const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen("/proc/meminfo", "r"), std::fclose);
    char line[256];
    while (file && std::fgets(line, sizeof line, file.get())) {
        uint64_t kib = 0;
        if (std::sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) {
            return kib * 1024;
        }
    }
    return 0;
}

std::string gibibytes(uint64_t n_bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(n_bytes) / (1 << 30));
    return text;
}

} // namespace

void guard_memory(const char *gguf_path) {
    struct stat file {};
    static const uint64_t available = available_bytes(); // before the first model, for the limit counts what that takes
    if (available == 0 || stat(gguf_path, &file) != 0) {
        return;
    }
    const auto size = static_cast<uint64_t>(file.st_size);
    if (size > available) {
        throw failure{std::string(gguf_path) + ": has " + gibibytes(size) + ", of memory there are " +
                      gibibytes(available) + "; take a smaller model or quantisation"};
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur > available) {
        limit.rlim_cur = available;
        setrlimit(RLIMIT_DATA, &limit);
    }
}

void keep_complaint(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && engine_log.size() < 1000) {
        engine_log += text;
        std::fputs(text, stderr); /* a backend may end the process by itself next */
    }
}

[[noreturn]] void fail(const std::string &what) {
    std::string text = what;
    if (!engine_log.empty()) {
        text += ": " + engine_log.substr(0, engine_log.find_last_not_of('\n') + 1);
        std::replace(text.begin(), text.end(), '\n', ' ');
    }
    throw failure{text};
}

model_ptr load(const ps_options &options, bool reads_weights) {
    llama_log_set(keep_complaint, nullptr);
    engine_log.clear();
    llama_backend_init();
    if (const char *problem = options.backend_path ? perfsuite::load_backend(options.backend_path) : nullptr) {
        fail(std::string(options.backend_path) + ": " + problem);
    }
    if (reads_weights) {
        guard_memory(options.gguf_path);
    }
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = options.n_gpu_layers;
    if (!reads_weights && !leave_weights(params, 0)) {
        fail("this release of llama.cpp cannot open a model without reading its weights");
    }
    model_ptr model(llama_model_load_from_file(options.gguf_path, params));
    if (!model) {
        fail(std::string(options.gguf_path) + ": llama.cpp cannot load it");
    }
    return model;
}

context_ptr open_context(llama_model *model, const ps_options &options, ps_recorder *recorder) {
    llama_adapter_lora *adapter = load_adapter(model, options);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(options.n_ctx);
    params.n_batch = static_cast<uint32_t>(options.n_batch);
    params.n_ubatch = static_cast<uint32_t>(options.n_ubatch);
    params.n_seq_max = static_cast<uint32_t>(options.n_sequences);
    params.n_threads = options.n_threads;
    params.n_threads_batch = options.n_threads;
    perfsuite::set_flash_attention(params, options.flash_attn);
    params.type_k = type_of(options.type_k);
    params.type_v = type_of(options.type_v);
    perfsuite::keep_whole_window(params, options.swa_full != 0);
    params.embeddings = options.embeds != 0;
    params.no_perf = true;
    if (recorder && options.recorder != PS_RECORDER_SPLITS) {
        params.cb_eval = ps_recorder_ask;
        params.cb_eval_user_data = recorder;
    }
    context_ptr context(llama_init_from_model(model, params));
    if (!context) {
        fail(std::string(options.gguf_path) + ": llama.cpp cannot make a context of " +
             std::to_string(options.n_ctx) + " tokens");
    }
    if (adapter && !apply_adapter(context.get(), adapter)) {
        fail(std::string(options.lora_path) + ": llama.cpp cannot apply the adapter");
    }
    if (recorder && (options.recorder == PS_RECORDER_CALLBACK || options.recorder == PS_RECORDER_EXPERTS)) {
        llama_set_abort_callback(context.get(), ps_recorder_tick, recorder);
    }
    return context;
}

} // namespace perfsuite
