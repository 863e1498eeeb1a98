// The projector of a vision model: an image of random pixels becomes embeddings.

#ifndef PERFSUITE_ENGINE_IMAGE_ENCODER_H
#define PERFSUITE_ENGINE_IMAGE_ENCODER_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "llama.h"
#include "mtmd_library.h"
#include "perfsuite/driver.h"

namespace perfsuite {

class image_encoder {
  public:
    // Raises `failure` where the options' projector cannot be loaded, or is none of the model's.
    image_encoder(const ps_options &options, const llama_model *model, ps_recorder *recorder);
    ~image_encoder();
    image_encoder(const image_encoder &) = delete;
    image_encoder &operator=(const image_encoder &) = delete;

    // Embeddings that an image becomes.
    int32_t n_tokens() const { return n_tokens_; }

    // Parts that the projector cuts the image into.
    size_t n_slices() const { return slices_.size(); }

    // Encodes the image, all of its slices where the projector cuts it.
    void encode();

  private:
    void cut_image(const ps_options &options);

    const mtmd_functions &library_;
    mtmd_context *context_ = nullptr;
    mtmd_input_chunks *chunks_ = nullptr;
    std::vector<const mtmd_input_chunk *> slices_;
    int32_t n_tokens_ = 0;
};

} // namespace perfsuite

#endif
