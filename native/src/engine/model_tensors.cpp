// The tensors that an engine wants of a model; see perfsuite/model_tensors.h.
//
// The engine makes a model from metadata alone, with every tensor that it knows of: those that a file may lack as well.
// Which these are comes out by leaving out one kind after the other, from a file that has a table of tensors and no
// bytes in it. What does not go with an engine may end the process, so each file is tried in a child.

#include "perfsuite/model_tensors.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <deque>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "failure.h"
#include "ggml.h"
#include "gguf.h"
#include "llama.h"
#include "release.h"

struct ps_model_tensors {
    std::deque<std::string> names; // which the rows point at
    std::vector<ps_model_tensor> rows;
    bool is_built = false;
};

namespace {

using perfsuite::failure;

#if defined(PS_LACKS_LLAMA_MODEL_INIT_FROM_USER) || defined(PS_LACKS_LLAMA_LOAD_MODE_NONE)

std::unique_ptr<ps_model_tensors> asked_tensors(const char *, const char *const *, const char *const *) {
    throw failure{"this release of llama.cpp makes no model from metadata alone (llama_model_init_from_user); "
                  "use a newer one"};
}

#else

constexpr uint32_t try_limit_s = 120;
constexpr uint32_t n_ctx_tried = 256;

struct gguf_deleter {
    void operator()(gguf_context *context) const { gguf_free(context); }
};
using gguf_ptr = std::unique_ptr<gguf_context, gguf_deleter>;

std::string first_complaint; // the one that says why; those after it say that there was one

void keep_complaint(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && first_complaint.empty()) {
        first_complaint = text;
        std::replace(first_complaint.begin(), first_complaint.end(), '\n', ' ');
    }
}

llama_model_params no_memory() {
    llama_model_params params = llama_model_default_params();
    params.no_alloc = true;
    params.n_gpu_layers = 0;
    params.load_mode = LLAMA_LOAD_MODE_NONE;
    return params;
}

void add_row(ps_model_tensors &model, const std::string &name, const int64_t *ne) {
    model.names.push_back(name);
    model.rows.push_back({model.names.back().c_str(), {ne[0], ne[1], ne[2], ne[3]}, 0});
}

using tensor_map = std::vector<std::pair<std::string, ggml_tensor *>>;

// Every tensor that the engine has a name for, each once.
std::unique_ptr<ps_model_tensors> known_tensors(gguf_context *metadata) {
    using lister = const tensor_map &(*)(const llama_model *);
    const auto list = reinterpret_cast<lister>(
        dlsym(RTLD_DEFAULT, "_Z29llama_internal_get_tensor_mapB5cxx11PK11llama_model"));
    if (!list) {
        throw failure{"this build of llama.cpp does not list its tensors (llama_internal_get_tensor_map)"};
    }
    llama_model *model = llama_model_init_from_user(metadata, [](ggml_tensor *, void *) {}, nullptr, no_memory());
    if (!model) {
        throw failure{"llama.cpp makes no model from this metadata: " + first_complaint};
    }
    auto found = std::make_unique<ps_model_tensors>();
    for (const auto &[name, tensor] : list(model)) {
        if (std::find(found->names.begin(), found->names.end(), name) == found->names.end()) {
            add_row(*found, name, tensor->ne);
        }
    }
    llama_model_free(model);
    return found;
}

// A name with a * for the number of each layer.
std::string kind_of(const std::string &name) {
    std::string kind;
    for (size_t at = 0; at < name.size();) {
        size_t dot = std::min(name.find('.', at), name.size());
        const bool is_number = dot > at && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at),
                                                       name.begin() + static_cast<std::ptrdiff_t>(dot),
                                                       [](unsigned char each) { return std::isdigit(each) != 0; });
        kind += (kind.empty() ? "" : ".") + (is_number ? std::string("*") : name.substr(at, dot - at));
        at = dot + 1;
    }
    return kind;
}

// A file in memory with the tensors that are not left out, whose bytes are a hole.
class hollow_file {
  public:
    hollow_file(const gguf_context *metadata, const ps_model_tensors &model) : descriptor_(memfd_create("tensors", MFD_CLOEXEC)) {
        const gguf_ptr header(gguf_init_empty());
        gguf_set_kv(header.get(), metadata);
        size_t n_bytes = 0;
        for (const ps_model_tensor &row : model.rows) {
            if (!row.is_left_out) {
                ggml_tensor tensor{};
                tensor.type = GGML_TYPE_F32;
                ggml_set_name(&tensor, row.name);
                tensor.nb[0] = sizeof(float);
                for (int i = 0; i < GGML_MAX_DIMS; i++) {
                    tensor.ne[i] = row.ne[i];
                    tensor.nb[i] = i == 0 ? sizeof(float) : tensor.nb[i - 1] * static_cast<size_t>(row.ne[i - 1]);
                }
                gguf_add_tensor(header.get(), &tensor);
                n_bytes += GGML_PAD(ggml_nbytes(&tensor), gguf_get_alignment(header.get()));
            }
        }
        n_bytes += gguf_get_meta_size(header.get());
        if (descriptor_ < 0 || !gguf_write_to_file(header.get(), path().c_str(), true) ||
            ftruncate(descriptor_, static_cast<off_t>(n_bytes)) != 0) {
            throw failure{"no memory for a table of tensors"};
        }
    }
    hollow_file(const hollow_file &) = delete;
    hollow_file &operator=(const hollow_file &) = delete;
    ~hollow_file() { close(descriptor_); }

    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  private:
    int descriptor_;
};

enum class verdict { refused, loads, builds };

void try_here(const char *path, verdict &reached) {
    llama_model *model = llama_model_load_from_file(path, no_memory());
    if (model) {
        reached = verdict::loads;
        llama_context_params params = llama_context_default_params();
        params.n_ctx = params.n_batch = params.n_ubatch = n_ctx_tried;
        perfsuite::set_flash_attention(params, false); // which every architecture can do without
        if (llama_init_from_model(model, params)) {
            reached = verdict::builds;
        }
    }
}

// How far a file with these tensors comes, in a child that may abort on the way.
verdict tried(const gguf_context *metadata, const ps_model_tensors &model) {
    const hollow_file file(metadata, model);
    void *shared = mmap(nullptr, sizeof(verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = shared == MAP_FAILED ? -1 : fork();
    if (child == 0) {
        alarm(try_limit_s);
        if (std::freopen("/dev/null", "w", stderr)) {
            try_here(file.path().c_str(), *static_cast<verdict *>(shared));
        }
        _exit(0);
    }
    if (child < 0 || waitpid(child, nullptr, 0) != child) {
        throw failure{"no child process to try a file in"};
    }
    const verdict reached = *static_cast<verdict *>(shared);
    munmap(shared, sizeof(verdict));
    return reached;
}

// What every file has although the engine would take one without: the vocabulary's table, what makes a layer a mixture of
// experts, and the biases of relative positions, which the first layer has for all.
bool is_essential(const std::string &kind) {
    const char *const parts[] = {"token_embd.weight", "ffn_gate_inp.weight", "_exps.weight", "attn_rel_b.weight"};
    return std::any_of(std::begin(parts), std::end(parts),
                       [&](const char *part) { return kind.find(part) != std::string::npos; });
}

bool is_factor(const std::string &kind) {
    const std::string end = "scale";
    return kind.size() > end.size() && kind.compare(kind.size() - end.size(), end.size(), end) == 0;
}

bool has(const char *const *kinds, const std::string &kind) {
    for (; *kinds; kinds++) {
        if (kind == *kinds) {
            return true;
        }
    }
    return false;
}

// Leaves out all of a kind, or takes it back but for what nobody wants.
void leave_out(ps_model_tensors &model, const std::string &kind, bool is_left_out, const char *const *unwanted) {
    for (ps_model_tensor &row : model.rows) {
        if (kind_of(row.name) == kind) {
            row.is_left_out = is_left_out || has(unwanted, kind) || has(unwanted, row.name);
        }
    }
}

// The same with gate and up of the experts as two tensors, which is how files have them although engines take one.
std::unique_ptr<ps_model_tensors> with_split_experts(const ps_model_tensors &model) {
    const std::string fused = "gate_up_exps.";
    auto split = std::make_unique<ps_model_tensors>();
    for (const ps_model_tensor &row : model.rows) {
        const std::string name = row.name;
        const size_t at = name.find(fused);
        if (at == std::string::npos) {
            add_row(*split, name, row.ne);
            continue;
        }
        for (const char *half : {"gate_exps.", "up_exps."}) {
            add_row(*split, name.substr(0, at) + half + name.substr(at + fused.size()), row.ne);
            split->rows.back().ne[name.substr(at + fused.size()) == "weight"] /= 2;
        }
    }
    return split;
}

std::unique_ptr<ps_model_tensors> asked_tensors(const char *path, const char *const *wanted,
                                                const char *const *unwanted) {
    llama_log_set(keep_complaint, nullptr);
    llama_backend_init();
    const gguf_ptr metadata(gguf_init_from_file(path, {true, nullptr}));
    if (!metadata) {
        throw failure{std::string(path) + ": is no header that llama.cpp reads"};
    }
    std::unique_ptr<ps_model_tensors> model = known_tensors(metadata.get());
    if (auto split = with_split_experts(*model);
        split->rows.size() > model->rows.size() && tried(metadata.get(), *split) >= tried(metadata.get(), *model)) {
        model = std::move(split);
    }
    std::vector<std::string> kinds;
    for (const ps_model_tensor &row : model->rows) {
        if (std::string kind = kind_of(row.name); std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
            kinds.push_back(std::move(kind));
        }
    }
    // Factors of quantised weights, which go with the weights, and of which only a few of the newest files have any.
    for (const std::string &kind : kinds) {
        leave_out(*model, kind, is_factor(kind) && !has(wanted, kind), unwanted);
    }
    verdict reached = tried(metadata.get(), *model);
    for (size_t at = 0; at < kinds.size() && reached == verdict::refused; at++) {
        leave_out(*model, kinds[at], false, unwanted);
    }
    reached = std::max(reached, tried(metadata.get(), *model));
    for (const std::string &kind : kinds) {
        if (!has(wanted, kind) && !has(unwanted, kind) && !is_essential(kind)) {
            leave_out(*model, kind, true, unwanted);
            const verdict without = tried(metadata.get(), *model);
            leave_out(*model, kind, without >= reached && without != verdict::refused, unwanted);
            reached = std::max(reached, without);
        }
    }
    model->is_built = reached == verdict::builds;
    return model;
}

#endif

} // namespace

extern "C" {

int32_t ps_model_tensors_open(const char *path, const char *const *wanted, const char *const *unwanted,
                              ps_model_tensors **model, char *error, size_t error_bytes) {
    return perfsuite::guarded(error, error_bytes,
                              [&] { *model = asked_tensors(path, wanted, unwanted).release(); });
}

const ps_model_tensor *ps_model_tensors_rows(const ps_model_tensors *model, uint64_t *n_rows) {
    *n_rows = model->rows.size();
    return model->rows.data();
}

int32_t ps_model_tensors_is_built(const ps_model_tensors *model) { return model->is_built; }

void ps_model_tensors_close(ps_model_tensors *model) { delete model; }

} // extern "C"
