// Encoding an image; see image_encoder.h.

#include "image_encoder.h"

#include <memory>
#include <random>
#include <string>

#include "loading.h"

namespace perfsuite {

namespace {

std::vector<unsigned char> draw_pixels(uint32_t seed, int32_t n_per_side) {
    std::mt19937 generator(seed);
    std::vector<unsigned char> pixels(size_t{3} * static_cast<size_t>(n_per_side) * static_cast<size_t>(n_per_side));
    for (unsigned char &value : pixels) {
        value = static_cast<unsigned char>(generator());
    }
    return pixels;
}

// The image alone where the library takes it so, and else where its marker stands in a text.
int32_t tokenize(const mtmd_functions &library, mtmd_context *context, mtmd_input_chunks *chunks, mtmd_bitmap *image) {
    if (library.tokenize_from_parts) {
        const mtmd_part part{nullptr, image};
        const mtmd_part *const parts[] = {&part};
        return library.tokenize_from_parts(context, chunks, parts, 1, false);
    }
    std::string marker = library.default_marker();
    marker.resize(MARKER_TEXT_BYTES, ' ');
    const mtmd_text text{marker.c_str(), MARKER_TEXT_BYTES, 0x0101};
    const mtmd_bitmap *images[] = {image};
    return library.tokenize(context, chunks, &text, images, 1);
}

} // namespace

image_encoder::image_encoder(const ps_options &options, const llama_model *model, ps_recorder *recorder)
    : library_(mtmd_library()) {
    if (llama_vocab_type(llama_model_get_vocab(model)) == LLAMA_VOCAB_TYPE_NONE) {
        fail(std::string(options.gguf_path) + ": has no vocabulary, which libmtmd needs beside an image");
    }
    if (library_.log_set) {
        library_.log_set(keep_complaint, nullptr);
    }
    guard_memory(options.mmproj_path);
    const bool is_asked = recorder && options.recorder != PS_RECORDER_SPLITS;
    const mtmd_settings settings{options.n_gpu_layers > 0, options.flash_attn != 0, options.n_threads,
                                 is_asked ? ps_recorder_ask : nullptr, recorder};
    context_ = library_.init_from_file(options.mmproj_path, model, mtmd_params_of(library_, settings));
    if (!context_) {
        fail(std::string(options.mmproj_path) + ": libmtmd cannot load it as a projector of " + options.gguf_path);
    }
    try {
        cut_image(options);
    } catch (...) {
        library_.input_chunks_free(chunks_);
        library_.free(context_);
        throw;
    }
}

image_encoder::~image_encoder() {
    library_.input_chunks_free(chunks_);
    library_.free(context_);
}

void image_encoder::cut_image(const ps_options &options) {
    const std::string path = options.mmproj_path;
    if (!library_.support_vision(context_)) {
        fail(path + ": encodes no images");
    }
    const std::vector<unsigned char> pixels = draw_pixels(options.seed, options.image_size);
    const auto side = static_cast<uint32_t>(options.image_size);
    const std::unique_ptr<mtmd_bitmap, void (*)(mtmd_bitmap *)> image(library_.bitmap_init(side, side, pixels.data()),
                                                                      library_.bitmap_free);
    chunks_ = library_.input_chunks_init();
    const int32_t status = tokenize(library_, context_, chunks_, image.get());
    if (status != 0) {
        fail(path + ": libmtmd cannot take an image of " + std::to_string(side) + " by " + std::to_string(side) +
             " pixels (it returned " + std::to_string(status) + ")");
    }
    for (size_t at = 0; at < library_.input_chunks_size(chunks_); at++) {
        const mtmd_input_chunk *chunk = library_.input_chunks_get(chunks_, at);
        if (library_.input_chunk_get_type(chunk) == MTMD_CHUNK_IMAGE) {
            slices_.push_back(chunk);
            n_tokens_ += static_cast<int32_t>(library_.input_chunk_get_n_tokens(chunk));
        }
    }
    if (slices_.empty()) {
        fail(path + ": libmtmd makes no embeddings of an image");
    }
}

void image_encoder::encode() {
    for (const mtmd_input_chunk *slice : slices_) {
        const int32_t status = library_.encode_chunk(context_, slice);
        if (status != 0) {
            fail("mtmd_encode_chunk returned " + std::to_string(status));
        }
    }
}

} // namespace perfsuite
