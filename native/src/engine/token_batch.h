/* A batch of llama.cpp's in which each token has its sequence, its place there, and a wish for logits. */
#ifndef PERFSUITE_ENGINE_TOKEN_BATCH_H
#define PERFSUITE_ENGINE_TOKEN_BATCH_H

#include <cstdint>

#include "llama.h"

namespace perfsuite {

class token_batch {
  public:
    explicit token_batch(int32_t most_tokens) : batch_(llama_batch_init(most_tokens, 0, 1)) {}
    token_batch(const token_batch &) = delete;
    token_batch &operator=(const token_batch &) = delete;
    ~token_batch() { llama_batch_free(batch_); }

    void clear() { batch_.n_tokens = 0; }

    void add(llama_token token, llama_pos position, llama_seq_id sequence, bool wants_logits) {
        const int32_t at = batch_.n_tokens++;
        batch_.token[at] = token;
        batch_.pos[at] = position;
        batch_.n_seq_id[at] = 1;
        batch_.seq_id[at][0] = sequence;
        batch_.logits[at] = wants_logits;
    }

    const llama_batch &native() const { return batch_; }

  private:
    llama_batch batch_;
};

} // namespace perfsuite

#endif
