/* Parameters of libmtmd as releases have them, handed over by value; and a folder that has no libmtmd. */
#include <cstring>
#include <string>

#include "check.h"
#include "loading.h"
#include "mtmd_library.h"

using perfsuite::mtmd_functions;
using perfsuite::mtmd_params;
using perfsuite::mtmd_settings;

/* ---- instead of the engine --------------------------------------------------------------------------------------- */

namespace perfsuite {

[[noreturn]] void fail(const std::string &what) { throw failure{what}; }

} // namespace perfsuite

extern "C" void llama_backend_init(void) {}

static const char *marker(void) { return "<an image>"; }

static bool hook(struct ggml_tensor *, bool, void *) { return false; }

/* ---- what releases have, the oldest first ------------------------------------------------------------------------- */

struct with_verbosity {
    bool use_gpu, print_timings;
    int n_threads, verbosity;
    const char *image_marker, *media_marker;
};

struct bare {
    bool use_gpu, print_timings;
    int n_threads;
    const char *image_marker, *media_marker;
};

struct with_flash_attn : bare {
    int flash_attn_type;
    bool warmup;
};

struct with_limits : with_flash_attn {
    int image_min_tokens, image_max_tokens;
};

struct with_hook : with_limits {
    ggml_backend_sched_eval_callback cb_eval;
    void *cb_eval_user_data;
};

struct with_batches : with_hook {
    int32_t batch_max_tokens;
};

struct with_progress : with_batches {
    bool (*progress_callback)(float, void *);
    void *progress_callback_user_data;
};

struct with_device {
    bool use_gpu;
    void *device;
    bool print_timings;
    int n_threads;
    const char *image_marker, *media_marker;
    int flash_attn_type;
    bool warmup;
    int image_min_tokens, image_max_tokens;
    ggml_backend_sched_eval_callback cb_eval;
    void *cb_eval_user_data;
    int32_t batch_max_tokens;
    bool (*progress_callback)(float, void *);
    void *progress_callback_user_data;
};

struct unheard_of : with_progress {
    void *more[4];
};

template <typename Form> static Form usual(void) {
    Form form{};
    form.use_gpu = form.print_timings = true;
    form.n_threads = 4;
    form.media_marker = marker();
    return form;
}

template <typename Form> static Form seen;

template <typename Form>
static perfsuite::mtmd_context *init_from_file(const char *path, const llama_model *, Form params) {
    CHECK(std::strcmp(path, "a projector") == 0);
    seen<Form> = params;
    return nullptr;
}

template <typename Form> static mtmd_functions library_of(Form (*defaults)(void)) {
    mtmd_functions library{};
    library.default_marker = marker;
    library.context_params_default = reinterpret_cast<mtmd_params (*)()>(reinterpret_cast<void *>(defaults));
    library.init_from_file =
        reinterpret_cast<decltype(library.init_from_file)>(reinterpret_cast<void *>(&init_from_file<Form>));
    return library;
}

template <typename Form> static Form handed_over(Form (*defaults)(void) = usual<Form>) {
    const mtmd_functions library = library_of<Form>(defaults);
    static int asker;
    const mtmd_settings settings{false, false, 7, hook, &asker};
    library.init_from_file("a projector", nullptr, perfsuite::mtmd_params_of(library, settings));
    CHECK(!seen<Form>.use_gpu && !seen<Form>.print_timings && seen<Form>.n_threads == 7);
    CHECK(seen<Form>.media_marker == marker() && seen<Form>.image_marker == nullptr);
    return seen<Form>;
}

template <typename Form> static Form eager(void) {
    Form form = usual<Form>();
    form.flash_attn_type = -1;
    form.warmup = true;
    return form;
}

template <typename Form> static Form limited(void) {
    Form form = eager<Form>();
    form.image_min_tokens = form.image_max_tokens = -1;
    return form;
}

template <typename Form> static void check_hook(void) {
    const Form found = handed_over<Form>(limited<Form>);
    CHECK(found.flash_attn_type == 0 && !found.warmup && found.image_min_tokens == -1 && found.image_max_tokens == -1);
    CHECK(found.cb_eval == hook && found.cb_eval_user_data != nullptr);
}

TEST(what_each_release_has_is_set) {
    handed_over<with_verbosity>();
    handed_over<bare>();
    const auto flash = handed_over<with_flash_attn>(eager<with_flash_attn>);
    CHECK(flash.flash_attn_type == 0 && !flash.warmup);
    const auto limits = handed_over<with_limits>(limited<with_limits>);
    CHECK(limits.flash_attn_type == 0 && !limits.warmup && limits.image_min_tokens == -1);
    check_hook<with_hook>();
    check_hook<with_batches>();
    check_hook<with_progress>();
    check_hook<with_device>();
}

TEST(flash_attention_is_the_librarys_own_where_it_is_wanted) {
    const mtmd_functions library = library_of<with_device>(limited<with_device>);
    const mtmd_settings settings{true, true, 2, nullptr, nullptr};
    library.init_from_file("a projector", nullptr, perfsuite::mtmd_params_of(library, settings));
    CHECK(seen<with_device>.flash_attn_type == -1 && seen<with_device>.use_gpu && !seen<with_device>.cb_eval);
}

template <typename Function> static std::string failure_of(Function function) {
    try {
        function();
    } catch (const perfsuite::failure &caught) {
        return caught.text;
    }
    return "";
}

TEST(a_form_that_is_not_known_is_refused) {
    const mtmd_functions library = library_of<unheard_of>(usual<unheard_of>);
    const std::string text = failure_of([&] { perfsuite::mtmd_params_of(library, {}); });
    CHECK(text.find("has parameters of 112 bytes, in a form that this suite does not know") != std::string::npos);
}

TEST(a_folder_without_the_library_is_named) {
    const std::string text = failure_of([] { perfsuite::mtmd_library(); });
    CHECK(text.find("/: libmtmd.so, which encodes images, cannot be loaded (") != std::string::npos);
}
