// Loading libmtmd; see mtmd_library.h.

#include "mtmd_library.h"

#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string>

#include "loading.h"

namespace perfsuite {

namespace {

std::string engine_folder() {
    Dl_info found{};
    if (dladdr(reinterpret_cast<void *>(&llama_backend_init), &found) == 0 || !found.dli_fname) {
        fail("the folder of libllama cannot be found, and with it libmtmd");
    }
    const std::string path = found.dli_fname;
    return path.substr(0, path.find_last_of('/') + 1);
}

void *opened_library(const std::string &folder) {
    for (const char *name : {"libmtmd.so.0", "libmtmd.so"}) {
        if (void *library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
            return library;
        }
    }
    const char *why = dlerror();
    fail(folder + ": libmtmd.so, which encodes images, cannot be loaded (" + (why ? why : "it is not there") +
         "); take a build of llama.cpp that has it, or leave out --mmproj");
}

template <typename Function> bool find(void *library, const char *name, Function *&function) {
    function = reinterpret_cast<Function *>(dlsym(library, name));
    return function != nullptr;
}

template <typename Function>
void find_or_fail(void *library, const std::string &folder, const char *name, Function *&function) {
    if (!find(library, name, function)) {
        fail(folder + ": its libmtmd has no " + name + "; take a newer llama.cpp, or leave out --mmproj");
    }
}

mtmd_functions found_functions() {
    const std::string folder = engine_folder();
    void *library = opened_library(folder);
    mtmd_functions found{};
    find_or_fail(library, folder, "mtmd_default_marker", found.default_marker);
    find_or_fail(library, folder, "mtmd_context_params_default", found.context_params_default);
    find_or_fail(library, folder, "mtmd_init_from_file", found.init_from_file);
    find_or_fail(library, folder, "mtmd_free", found.free);
    find_or_fail(library, folder, "mtmd_support_vision", found.support_vision);
    find_or_fail(library, folder, "mtmd_bitmap_init", found.bitmap_init);
    find_or_fail(library, folder, "mtmd_bitmap_free", found.bitmap_free);
    find_or_fail(library, folder, "mtmd_input_chunks_init", found.input_chunks_init);
    find_or_fail(library, folder, "mtmd_input_chunks_free", found.input_chunks_free);
    find_or_fail(library, folder, "mtmd_input_chunks_size", found.input_chunks_size);
    find_or_fail(library, folder, "mtmd_input_chunks_get", found.input_chunks_get);
    find_or_fail(library, folder, "mtmd_input_chunk_get_type", found.input_chunk_get_type);
    find_or_fail(library, folder, "mtmd_input_chunk_get_n_tokens", found.input_chunk_get_n_tokens);
    find_or_fail(library, folder, "mtmd_tokenize", found.tokenize);
    find_or_fail(library, folder, "mtmd_encode_chunk", found.encode_chunk);
    find(library, "mtmd_tokenize_from_parts", found.tokenize_from_parts);
    find(library, "mtmd_log_set", found.log_set);
    return found;
}

// Where a member lies: in front of the marker of images by release, behind it by what was added in turn.
struct layout {
    size_t print_timings, n_threads;
    size_t marker;   // of the pointer to it
    size_t n_behind; // bytes of the members behind that pointer, in steps of 8
};

constexpr size_t FLASH_ATTN = 8, WARMUP = 12, CB_EVAL = 24, CB_EVAL_DATA = 32; // from the marker's pointer on
constexpr size_t WITH_FLASH_ATTN = 8, WITH_CB_EVAL = 32;

// *Source*: `struct mtmd_context_params` in tools/mtmd/mtmd.h of llama.cpp, from the first release that has it to b10581.
constexpr layout LAYOUTS[] = {
    {1, 4, 24, 0},  // a level of the log is still in front
    {1, 4, 16, 0},  {1, 4, 16, 8},  {1, 4, 16, 16}, // flash attention and warm-up; limits of an image's tokens
    {1, 4, 16, 32}, {1, 4, 16, 40}, {1, 4, 16, 56}, // the hook of graphs; tokens of a batch; the hook of progress
    {16, 20, 32, 56},                               // a device in front
};

// The defaults over a pattern, to see which bytes they have.
mtmd_params defaults_over(const mtmd_functions &library, unsigned char pattern) {
    alignas(8) unsigned char place[sizeof(mtmd_params)];
    std::memset(place, pattern, sizeof place);
    asm volatile("" : : "r"(place) : "memory"); // whoever returns a struct may take what was there for nothing
    return *new (place) mtmd_params(library.context_params_default());
}

layout layout_of(const mtmd_functions &library, const mtmd_params &zeros, const mtmd_params &ones) {
    size_t n_bytes = sizeof(mtmd_params);
    while (n_bytes > 0 && zeros.bytes[n_bytes - 1] != ones.bytes[n_bytes - 1]) {
        n_bytes--;
    }
    for (const layout &each : LAYOUTS) {
        const char *marker = nullptr;
        std::memcpy(&marker, zeros.bytes + each.marker, sizeof marker);
        const size_t end = each.marker + sizeof marker + each.n_behind;
        if (marker == library.default_marker() && n_bytes <= end && n_bytes + 8 > end) {
            return each;
        }
    }
    fail("libmtmd of this llama.cpp has parameters of " + std::to_string(n_bytes) +
         " bytes, in a form that this suite does not know; take an older llama.cpp, or leave out --mmproj");
}

template <typename Member> void put(mtmd_params &params, size_t at, Member member) {
    std::memcpy(params.bytes + at, &member, sizeof member);
}

} // namespace

const mtmd_functions &mtmd_library() {
    static const mtmd_functions library = found_functions();
    return library;
}

mtmd_params mtmd_params_of(const mtmd_functions &library, const mtmd_settings &settings) {
    mtmd_params params = defaults_over(library, 0x00);
    const layout form = layout_of(library, params, defaults_over(library, 0xff));
    put(params, 0, settings.use_gpu);
    put(params, form.print_timings, false);
    put(params, form.n_threads, settings.n_threads);
    if (form.n_behind >= WITH_FLASH_ATTN) {
        if (!settings.flash_attn) {
            put(params, form.marker + FLASH_ATTN, int{0});
        }
        put(params, form.marker + WARMUP, false);
    }
    if (form.n_behind >= WITH_CB_EVAL && settings.ask) {
        put(params, form.marker + CB_EVAL, settings.ask);
        put(params, form.marker + CB_EVAL_DATA, settings.asker);
    }
    return params;
}

} // namespace perfsuite
