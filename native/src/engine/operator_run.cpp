// One operator, again and again; see perfsuite/operator_run.h.

#include "perfsuite/operator_run.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "backends.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "operator_graph.h"
#include "perfsuite/clock.h"

struct ps_operator_device {
    ggml_backend_dev_t device = nullptr;
    perfsuite::backend_ptr backend;
};

namespace {

using perfsuite::buffer_ptr;
using perfsuite::context_ptr;
using perfsuite::failure;
using perfsuite::make_context;

constexpr size_t most_tensors = 16; // of one operator: its inputs, their views, and itself
constexpr int64_t most_size = std::numeric_limits<int32_t>::max();

std::string complaint; // ggml's own last one, for error messages

void keep_complaint(ggml_log_level level, const char *text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR && complaint.size() < 500) {
        complaint += text;
    }
}

[[noreturn]] void fail(std::string text) {
    if (!complaint.empty()) {
        text += ": " + complaint.substr(0, complaint.find_last_not_of('\n') + 1);
        std::replace(text.begin(), text.end(), '\n', ' ');
    }
    throw failure{text};
}

ggml_backend_dev_t find_device(const char *backend, const char *path) {
    if (const char *problem = path ? perfsuite::load_backend(path) : nullptr) {
        fail(std::string(path) + ": " + problem);
    }
    ggml_backend_reg_t registry = ggml_backend_reg_by_name(backend);
    if (!registry || ggml_backend_reg_dev_count(registry) == 0) {
        fail(std::string("ggml has no device for the backend ") + backend);
    }
    return ggml_backend_reg_dev_get(registry, 0);
}

// The sizes of an operator, refused where ggml would end the process for them.
class sizes {
  public:
    sizes(const ps_operator_spec &spec)
        : type(perfsuite::known_type(spec.type)), is_attention(std::string(spec.op) == "FLASH_ATTN_EXT"),
          is_parameter(!is_attention && spec.n_heads == 0), inner(spec.n_inner), tokens(spec.n_tokens),
          rows(is_attention ? spec.n_past + spec.n_tokens : spec.n_outer),
          heads(is_parameter ? 1 : spec.n_heads), stored_heads(is_parameter ? 1 : spec.n_kv_heads) {
        if (!is_attention && std::string(spec.op) != "MUL_MAT") {
            fail(std::string("the operator ") + spec.op + " cannot be run alone");
        }
        for (const int64_t size : {inner, rows, tokens, heads, stored_heads}) {
            if (size < 1 || size > most_size) {
                fail("a size of " + std::to_string(size) + "; expected 1 to " + std::to_string(most_size));
            }
        }
        if (inner % ggml_blck_size(type) != 0) {
            fail("rows of " + std::to_string(inner) + " values; expected whole blocks of " +
                 std::to_string(ggml_blck_size(type)));
        }
        if (heads % stored_heads != 0) {
            fail(std::to_string(heads) + " heads; expected a multiple of " + std::to_string(stored_heads));
        }
    }

    ggml_type type;
    bool is_attention, is_parameter;
    int64_t inner, tokens, rows, heads, stored_heads;
};

// The tensors that an operator reads, without memory.
struct inputs {
    context_ptr context;
    std::array<ggml_tensor *, 3> given{}; // by ps_operator_input; nullptr where the operator has none
    ggml_tensor *mask = nullptr;
};

inputs make_inputs(const sizes &wanted) {
    inputs made;
    made.context = make_context(most_tensors, 0);
    ggml_context *context = made.context.get();
    if (wanted.is_attention) {
        const int64_t k = wanted.inner, kv_heads = wanted.stored_heads, n_kv = wanted.rows, n = wanted.tokens;
        made.given = {ggml_new_tensor_3d(context, wanted.type, k, kv_heads, n_kv),
                      ggml_new_tensor_3d(context, GGML_TYPE_F32, k, wanted.heads, n),
                      ggml_new_tensor_3d(context, wanted.type, k, kv_heads, n_kv)};
        made.mask = ggml_new_tensor_2d(context, GGML_TYPE_F16, n_kv, perfsuite::mask_rows(n));
        return made;
    }
    made.given = {ggml_new_tensor_3d(context, wanted.type, wanted.inner, wanted.rows, wanted.stored_heads),
                  ggml_new_tensor_3d(context, GGML_TYPE_F32, wanted.inner, wanted.tokens, wanted.heads), nullptr};
    return made;
}

ggml_tensor *make_node(ggml_context *context, const inputs &read) {
    const auto &[stored, activations, values] = read.given;
    return read.mask ? perfsuite::attention_node(context, activations, stored, values, read.mask)
                     : ggml_mul_mat(context, stored, activations);
}

void refuse_unsupported(const ps_operator_device &device, const sizes &wanted) {
    const inputs read = make_inputs(wanted);
    context_ptr context = make_context(most_tensors, 0);
    ggml_tensor *node = make_node(context.get(), read);
    const std::string name = ggml_backend_dev_name(device.device);
    if (!ggml_backend_dev_supports_op(device.device, node)) {
        fail("ggml does not compute " + std::string(ggml_op_name(node->op)) + " of " + ggml_type_name(wanted.type) +
             " at this shape on " + name);
    }
    ggml_backend_buffer_type_t plain = ggml_backend_dev_buffer_type(device.device);
    for (const ggml_tensor *tensor : {read.given[0], read.given[1], node}) {
        if (ggml_nbytes(tensor) > ggml_backend_buft_get_max_size(plain)) {
            fail("a tensor of " + std::to_string(ggml_nbytes(tensor)) + " bytes is more than a buffer of " + name +
                 " holds");
        }
    }
}

} // namespace

struct ps_operator_run {
    ps_operator_run(ps_operator_device &device, const ps_operator_spec &spec) : device_(device) {
        const sizes wanted(spec);
        refuse_unsupported(device, wanted);
        read_ = make_inputs(wanted);
        place_inputs(wanted);
        context_ptr context = make_context(most_tensors, 0);
        n_outputs_ = ggml_nelements(make_node(context.get(), read_));
        place_output();
        if (read_.mask) {
            const std::vector<char> zeros(ggml_nbytes(read_.mask), 0);
            ggml_backend_tensor_set(read_.mask, zeros.data(), 0, zeros.size());
        }
    }

    void set(int32_t input, const void *content, size_t n_bytes) {
        const bool is_there = input >= 0 && input < 3 && read_.given[static_cast<size_t>(input)];
        ggml_tensor *tensor = is_there ? read_.given[static_cast<size_t>(input)] : nullptr;
        if (!tensor || n_bytes != ggml_nbytes(tensor)) {
            fail("input " + std::to_string(input) + " of " + std::to_string(n_bytes) + " bytes; expected " +
                 (tensor ? std::to_string(ggml_nbytes(tensor)) : "another"));
        }
        ggml_backend_tensor_set(tensor, content, 0, n_bytes);
    }

    void clear() {
        const std::vector<float> nothing(n_values(), std::numeric_limits<float>::quiet_NaN());
        ggml_backend_tensor_set(output_, nothing.data(), 0, nothing.size() * sizeof(float));
    }

    int64_t compute(int32_t n_copies) {
        if (n_copies < 1) {
            fail(std::to_string(n_copies) + " copies; expected 1 or more");
        }
        if (n_copies != n_copies_) {
            make_graph(n_copies);
        }
        ggml_backend_synchronize(device_.backend.get());
        const int64_t start_ns = ps_now_ns();
        const ggml_status status = ggml_backend_graph_compute(device_.backend.get(), graph_);
        ggml_backend_synchronize(device_.backend.get());
        const int64_t end_ns = ps_now_ns();
        if (status != GGML_STATUS_SUCCESS) {
            fail("ggml cannot compute the operator (status " + std::to_string(status) + ")");
        }
        return end_ns - start_ns;
    }

    size_t n_values() const { return static_cast<size_t>(n_outputs_) + PS_OPERATOR_GUARD_VALUES; }

    void read(float *values, size_t n_wanted) const {
        if (n_wanted != n_values()) {
            fail("an output of " + std::to_string(n_wanted) + " values; expected " + std::to_string(n_values()));
        }
        ggml_backend_tensor_get(output_, values, 0, n_wanted * sizeof(float));
    }

  private:
    ps_operator_device &device_;
    inputs read_;
    context_ptr output_context_, graph_context_;
    buffer_ptr parameter_buffer_, input_buffer_, output_buffer_;
    ggml_tensor *output_ = nullptr; // and the guard behind it
    ggml_cgraph *graph_ = nullptr;
    int64_t n_outputs_ = 0;
    int32_t n_copies_ = 0;

    // A parameter lies in a buffer of its own, the rest in one of the device's.
    void place_inputs(const sizes &wanted) {
        if (wanted.is_parameter) {
            context_ptr context = make_context(most_tensors, 0);
            ggml_tensor *parameter = read_.given[PS_OPERATOR_STORED];
            const ggml_tensor *node = make_node(context.get(), read_);
            ggml_backend_buffer_type_t type = perfsuite::parameter_place(device_.device, parameter, node);
            parameter_buffer_.reset(
                ggml_backend_buft_alloc_buffer(type, ggml_backend_buft_get_alloc_size(type, parameter)));
            if (!parameter_buffer_) {
                fail("no memory for the weights");
            }
            ggml_backend_buffer_set_usage(parameter_buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
            place(parameter_buffer_.get(), parameter);
        }
        input_buffer_.reset(ggml_backend_alloc_ctx_tensors(read_.context.get(), device_.backend.get()));
        if (!input_buffer_) {
            fail("no memory for the inputs");
        }
    }

    void place_output() {
        output_context_ = make_context(most_tensors, 0);
        output_ = ggml_new_tensor_1d(output_context_.get(), GGML_TYPE_F32, static_cast<int64_t>(n_values()));
        output_buffer_.reset(ggml_backend_alloc_ctx_tensors(output_context_.get(), device_.backend.get()));
        if (!output_buffer_) {
            fail("no memory for the output");
        }
    }

    static void place(ggml_backend_buffer_t buffer, ggml_tensor *tensor) {
        if (!perfsuite::place_node(buffer, ggml_backend_buffer_get_base(buffer), tensor)) {
            fail("a tensor cannot be placed");
        }
    }

    // All copies write to the one place of the output, one after the other.
    void make_graph(int32_t n_copies) {
        const auto n = static_cast<size_t>(n_copies);
        n_copies_ = 0;
        graph_context_ = make_context(4 * n + most_tensors, 8 * n + most_tensors);
        graph_ = ggml_new_graph_custom(graph_context_.get(), 8 * n + most_tensors, false);
        for (size_t i = 0; i < n; i++) {
            ggml_build_forward_expand(graph_, make_node(graph_context_.get(), read_));
        }
        for (int i = 0; i < ggml_graph_n_nodes(graph_); i++) {
            place(output_buffer_.get(), ggml_graph_node(graph_, i));
        }
        n_copies_ = n_copies;
    }
};

namespace {

template <typename action> int32_t checked(char *error, size_t error_bytes, action &&act) {
    complaint.clear();
    return perfsuite::guarded(error, error_bytes, act);
}

} // namespace

extern "C" int32_t ps_operator_device_open(const char *backend, const char *backend_path, int32_t n_threads,
                                           ps_operator_device **device, char *error, size_t error_bytes) {
    return checked(error, error_bytes, [&] {
        ggml_log_set(keep_complaint, nullptr);
        auto opened = std::make_unique<ps_operator_device>();
        opened->device = find_device(backend, backend_path);
        opened->backend.reset(ggml_backend_dev_init(opened->device, nullptr));
        if (!opened->backend) {
            fail(std::string("ggml cannot open its backend ") + backend);
        }
        if (ggml_backend_is_cpu(opened->backend.get())) {
            ggml_backend_cpu_set_n_threads(opened->backend.get(), n_threads);
        }
        *device = opened.release();
    });
}

extern "C" const char *ps_operator_device_name(const ps_operator_device *device) {
    return ggml_backend_dev_description(device->device);
}

extern "C" void ps_operator_device_close(ps_operator_device *device) { delete device; }

extern "C" int32_t ps_operator_check(const ps_operator_device *device, const ps_operator_spec *spec, char *error,
                                     size_t error_bytes) {
    return checked(error, error_bytes, [&] { refuse_unsupported(*device, sizes(*spec)); });
}

extern "C" int32_t ps_operator_open(ps_operator_device *device, const ps_operator_spec *spec, ps_operator_run **run,
                                    char *error, size_t error_bytes) {
    return checked(error, error_bytes, [&] { *run = new ps_operator_run(*device, *spec); });
}

extern "C" int32_t ps_operator_set(ps_operator_run *run, int32_t input, const void *content, size_t n_bytes,
                                   char *error, size_t error_bytes) {
    return checked(error, error_bytes, [&] { run->set(input, content, n_bytes); });
}

extern "C" int32_t ps_operator_clear(ps_operator_run *run, char *error, size_t error_bytes) {
    return checked(error, error_bytes, [&] { run->clear(); });
}

extern "C" int32_t ps_operator_compute(ps_operator_run *run, int32_t n_copies, int64_t *elapsed_ns, char *error,
                                       size_t error_bytes) {
    return checked(error, error_bytes, [&] { *elapsed_ns = run->compute(n_copies); });
}

extern "C" size_t ps_operator_output_values(const ps_operator_run *run) { return run->n_values(); }

extern "C" int32_t ps_operator_read(const ps_operator_run *run, float *values, size_t n_values, char *error,
                                    size_t error_bytes) {
    return checked(error, error_bytes, [&] { run->read(values, n_values); });
}

extern "C" void ps_operator_close(ps_operator_run *run) { delete run; }
