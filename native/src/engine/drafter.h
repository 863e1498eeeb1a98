/* Who proposes tokens in speculative decoding, and how many of them pass.
 *
 * Which tokens a text has is drawn before, as without a draft; so the draft does all its work, and what it proposes is not
 * looked at.  How many tokens of a round pass is drawn, too: each with the same chance, up to the first that fails. */
#ifndef PERFSUITE_ENGINE_DRAFTER_H
#define PERFSUITE_ENGINE_DRAFTER_H

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "llama.h"
#include "release.h"

namespace perfsuite {

class drafter {
  public:
    /* Without a context the text itself is searched for what followed its last tokens before. */
    drafter(llama_context *context, llama_sampler *sampler, int32_t n_draft, double acceptance_ratio)
        : context_(context), sampler_(sampler), n_draft_(n_draft), acceptance_ratio_(acceptance_ratio) {}

    /* Forgets the text before, and begins the draws anew. */
    void begin(uint32_t seed) {
        order_.seed(seed);
        n_read_ = 0;
        if (context_) {
            clear_memory(context_);
        }
    }

    /* Reads on up to a place, `n_batch` tokens at once. */
    template <typename Decode> void read(llama_token *tokens, int32_t end, int32_t n_batch, Decode decode) {
        while (context_ && n_read_ < end) {
            const int32_t n_tokens = std::min(n_batch, end - n_read_);
            decode(context_, tokens + n_read_, n_tokens);
            n_read_ += n_tokens;
        }
    }

    /* Proposes what follows the token at a place: so many steps, of which the first reads what it has not read yet. */
    template <typename Decode> void propose(llama_token *tokens, int32_t at, Decode decode) {
        if (!context_) {
            found_ = looked_up(tokens, at + 1);
            return;
        }
        for (int32_t step = 0; step < n_draft_; step++) {
            decode(context_, tokens + n_read_, at + step + 1 - n_read_);
            n_read_ = at + step + 1;
            llama_sampler_sample(sampler_, context_, -1);
        }
    }

    /* How many of a round's tokens pass. */
    int32_t draw_accepted() {
        int32_t n_accepted = 0;
        while (n_accepted < n_draft_ && static_cast<double>(order_()) < acceptance_ratio_ * 4294967296.0) {
            n_accepted++;
        }
        return n_accepted;
    }

    /* Forgets all from a place on; whether the engine can. */
    bool forget_from(int32_t place) {
        n_read_ = std::min(n_read_, place);
        return !context_ || perfsuite::forget_from(context_, place);
    }

  private:
    /* Where the last tokens of a text stood before; -1 where they did not. */
    static int32_t looked_up(const llama_token *tokens, int32_t n_tokens) {
        constexpr int32_t n_gram = 3;
        for (int32_t at = n_tokens - n_gram - 1; at >= 0; at--) {
            if (std::equal(tokens + at, tokens + at + n_gram, tokens + n_tokens - n_gram)) {
                return at;
            }
        }
        return -1;
    }

    llama_context *context_;
    llama_sampler *sampler_;
    int32_t n_draft_;
    double acceptance_ratio_;
    std::mt19937 order_;
    int32_t n_read_ = 0; /* tokens that the draft's cache holds */
    volatile int32_t found_ = -1;
};

} // namespace perfsuite

#endif
