// The phase driver; see perfsuite/driver.h.

#include "perfsuite/driver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "drafter.h"
#include "image_encoder.h"
#include "llama.h"
#include "loading.h"
#include "perfsuite/clock.h"
#include "perfsuite/live.h"
#include "release.h"
#include "token_batch.h"

namespace {

using perfsuite::context_ptr;
using perfsuite::fail;
using perfsuite::guarded;
using perfsuite::load;
using perfsuite::model_ptr;
using perfsuite::open_context;

struct sampler_deleter {
    void operator()(llama_sampler *sampler) const { llama_sampler_free(sampler); }
};
struct recorder_deleter {
    void operator()(ps_recorder *recorder) const { ps_recorder_close(recorder); }
};

using sampler_ptr = std::unique_ptr<llama_sampler, sampler_deleter>;
using recorder_ptr = std::unique_ptr<ps_recorder, recorder_deleter>;

constexpr int n_brackets = 16;

double ticks_per_ns() {
    const ps_clock_point first = ps_calibrate(n_brackets);
    while (ps_now_ns() - first.ns < 2'000'000) {
    }
    const ps_clock_point second = ps_calibrate(n_brackets);
    return static_cast<double>(second.ticks - first.ticks) / static_cast<double>(second.ns - first.ns);
}

recorder_ptr open_recorder(const ps_options &options) {
    if (options.recorder == PS_RECORDER_NONE) {
        return nullptr;
    }
    recorder_ptr recorder(
        ps_recorder_open(static_cast<ps_recorder_kind>(options.recorder), 1 << 17, options.n_threads));
    if (!recorder) {
        fail("no memory for the recorder's ring");
    }
    if (options.inject_op) {
        ps_recorder_inject(recorder.get(), options.inject_op, options.inject_ratio, options.inject_extra_ns,
                           ticks_per_ns());
    }
    return recorder;
}

std::vector<llama_token> draw_tokens(uint32_t seed, int32_t count, int32_t n_vocab) {
    std::mt19937 generator(seed);
    std::vector<llama_token> tokens(static_cast<size_t>(count));
    for (llama_token &token : tokens) {
        token = static_cast<llama_token>(generator() % static_cast<uint32_t>(n_vocab));
    }
    return tokens;
}

// Where the engine's buffers lie within a cache line and a page decides a quarter of the speed of some operators, and it
// follows from every allocation before: the length of a path is enough to change it.  Blocks of random sizes make it a
// draw of each process, which fresh processes average out, and not a property of one side of a comparison.
std::vector<std::unique_ptr<char[]>> draw_padding(uint32_t seed) {
    constexpr size_t n_blocks = 64, most_bytes = 4096;
    std::vector<std::unique_ptr<char[]>> blocks;
    std::mt19937 generator(seed);
    for (size_t i = 0; seed && i < n_blocks; i++) {
        blocks.push_back(std::make_unique<char[]>(1 + generator() % most_bytes));
    }
    return blocks;
}

// `evaluate` is llama_decode, or of an encoder llama_encode.
void evaluate_or_fail(int32_t (*evaluate)(llama_context *, llama_batch), const char *name, llama_context *context,
                      const llama_batch &batch) {
    const int32_t status = evaluate(context, batch);
    if (status != 0) {
        const std::string n_tokens = std::to_string(batch.n_tokens);
        fail(std::string(name) + " of " + n_tokens + " tokens returned " + std::to_string(status));
    }
    llama_synchronize(context);
}

void decode_or_fail(llama_context *context, const llama_batch &batch) {
    evaluate_or_fail(llama_decode, "llama_decode", context, batch);
}

void decode_next(llama_context *context, llama_token *tokens, int32_t n_tokens) {
    decode_or_fail(context, llama_batch_get_one(tokens, n_tokens));
}

// The draft's model and context: the target's settings, without what is of the target alone.
struct draft_model {
    model_ptr model;
    context_ptr context;
    sampler_ptr sampler;
    std::unique_ptr<perfsuite::drafter> drafter;

    explicit draft_model(const ps_options &options) {
        if (options.draft_path) {
            ps_options own = options;
            own.gguf_path = options.draft_path;
            own.lora_path = nullptr;
            model = load(own);
            context = open_context(model.get(), own, nullptr);
            sampler.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
            llama_sampler_chain_add(sampler.get(), llama_sampler_init_greedy());
        }
        drafter = std::make_unique<perfsuite::drafter>(context.get(), sampler.get(), options.n_draft,
                                                       options.acceptance_ratio);
    }

    // Tokens that both know.
    int32_t n_vocab(int32_t n_target) const {
        return model ? std::min(n_target, llama_vocab_n_tokens(llama_model_get_vocab(model.get()))) : n_target;
    }
};

// Contexts with and without the recorder on one model, each run in turn.
//
// Where a context's buffers lie decides a percent of its speed. So there are two of each, opened in the order plain,
// recorded, recorded, plain, and a pair is the sum over both: what the order of opening does falls out.
class overhead_bench {
  public:
    struct latencies {
        int64_t plain_ns, recorded_ns;
    };

    overhead_bench(const ps_options &options, const ps_workload &workload, bool prefill)
        : workload_(workload), prefill_(prefill), model_(load(options)), recorder_(open_recorder(options)),
          order_(options.seed) {
        for (const bool recorded : recorded_) {
            contexts_.push_back(open_context(model_.get(), options, recorded ? recorder_.get() : nullptr));
        }
        const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
        tokens_ = draw_tokens(options.seed, workload.n_prompt + workload.n_gen, n_vocab);
    }

    // After so many pairs the context is full and starts again.
    int32_t n_steps() const { return prefill_ ? 1 : workload_.n_gen; }

    latencies measure_pair(int32_t number) {
        std::array<size_t, 4> turns{0, 1, 2, 3};
        std::shuffle(turns.begin(), turns.end(), order_);
        latencies sum{0, 0};
        for (const size_t which : turns) {
            (recorded_[which] ? sum.recorded_ns : sum.plain_ns) += measure(which, number % n_steps());
        }
        return sum;
    }

  private:
    int64_t measure(size_t which, int32_t step) {
        llama_context *context = contexts_[which].get();
        ps_recorder_watch_entries(recorded_[which] ? recorder_.get() : nullptr);
        if (step == 0) {
            perfsuite::clear_memory(context);
            if (!prefill_) {
                decode_next(context, tokens_.data(), workload_.n_prompt);
            }
        }
        llama_token *batch = prefill_ ? tokens_.data() : tokens_.data() + workload_.n_prompt + step;
        const int64_t start_ns = ps_now_ns();
        decode_next(context, batch, prefill_ ? workload_.n_prompt : 1);
        const int64_t end_ns = ps_now_ns();
        if (recorded_[which] && recorder_) {
            ps_recorder_clear(recorder_.get());
        }
        return end_ns - start_ns;
    }

    static constexpr std::array<bool, 4> recorded_{false, true, true, false};

    ps_workload workload_;
    bool prefill_;
    model_ptr model_;
    recorder_ptr recorder_;
    std::vector<context_ptr> contexts_;
    std::vector<llama_token> tokens_;
    std::mt19937 order_;
};

} // namespace

struct ps_engine {
    ps_options options{};
    std::vector<std::unique_ptr<char[]>> padding;
    model_ptr model;
    recorder_ptr recorder;
    context_ptr context;
    bool is_encoder = false; // that gives embeddings: it keeps nothing of a text, and decodes none
    sampler_ptr sampler;
    std::unique_ptr<draft_model> draft;
    std::unique_ptr<perfsuite::image_encoder> images;
    std::unique_ptr<perfsuite::token_batch> batch; // of tokens with places, where they are not one sequence's next
    std::vector<llama_token> tokens; // of all sequences, one text behind the other
    int32_t n_text = 0;
    std::vector<float> prompt_probabilities, probabilities; // of the last prompt that was read, and of the last step
    std::vector<ps_span> spans;
    std::vector<ps_output> outputs;
    std::vector<llama_token> chosen; // where each evaluation's logits are highest
    ps_clock_point clock_start{}, clock_end{};
    int32_t n_repetitions = 0; // run and kept so far
    uint32_t n_texts = 0;      // drawn so far, for warm-ups too: no prompt comes twice
    void (*between)(void *) = nullptr; // called between a prompt and its answer
    void *between_context = nullptr;
    volatile float sink = 0.0f;
    std::array<std::vector<uint8_t>, 2> group_ends; // of a prompt and of a decode step

    void add(ps_phase phase, int32_t repetition, int32_t token, int32_t n_tokens, int64_t start_ns) {
        const int64_t end_ns = ps_now_ns();
        spans.push_back({phase, repetition, token, n_tokens, start_ns, end_ns});
        ps_live_push(&spans.back());
    }

    // The busy wait of an injected slowdown, within the phase that is to seem slower.
    void slow_down(ps_phase phase, int64_t start_ns) const {
        if (options.inject_phases & (1u << phase)) {
            const int64_t now_ns = ps_now_ns();
            const auto wait_ns = static_cast<int64_t>(static_cast<double>(now_ns - start_ns) * options.inject_phase_ratio);
            while (ps_now_ns() - now_ns < wait_ns) {
            }
        }
    }

    // One evaluation as a phase of its own.
    void evaluate(ps_phase phase, int32_t repetition, int32_t token, const llama_batch &tokens) {
        if (recorder) {
            const std::vector<uint8_t> &ends = group_ends[phase == PS_PHASE_DECODE];
            ps_recorder_set_groups(recorder.get(), ends.data(), static_cast<int32_t>(ends.size()));
        }
        const int64_t start_ns = ps_now_ns();
        if (is_encoder) {
            evaluate_or_fail(llama_encode, "llama_encode", context.get(), tokens);
        } else {
            decode_or_fail(context.get(), tokens);
        }
        slow_down(phase, start_ns);
        add(phase, repetition, token, tokens.n_tokens, start_ns);
        if (recorder) {
            ps_recorder_end_evaluation(recorder.get());
            refuse_idle(token, tokens.n_tokens);
        }
    }

    // An engine that says that it has evaluated tokens has asked for nodes of a graph.
    void refuse_idle(int32_t token, int32_t n_tokens) const {
        if (options.recorder != PS_RECORDER_SPLITS && !ps_recorder_was_asked(recorder.get())) {
            fail("llama.cpp computed nothing: it returned from " + std::to_string(n_tokens) + " tokens at place " +
                 std::to_string(token) + " without an operator; measure another build, or fix this one");
        }
    }

    // Of the last evaluation, from the logits of one of its tokens.
    void choose_next(std::vector<float> &probabilities, int32_t repetition, int32_t token, int32_t row = -1) {
        int64_t start_ns = ps_now_ns();
        const float *logits = llama_get_logits_ith(context.get(), row);
        if (!logits) {
            fail("llama.cpp has no logits at place " + std::to_string(token) + "; measure another build, or fix this one");
        }
        ps_phase_copy(probabilities.data(), logits, probabilities.size());
        add(PS_PHASE_COPY, repetition, token, 1, start_ns);

        start_ns = ps_now_ns();
        sink = ps_phase_softmax(probabilities.data(), probabilities.size());
        add(PS_PHASE_SOFTMAX, repetition, token, 1, start_ns);
        if (!std::isfinite(sink)) {
            fail("llama.cpp's logits at place " + std::to_string(token) +
                 " are not finite numbers; check the model's file, or measure another build");
        }

        start_ns = ps_now_ns();
        const llama_token next = llama_sampler_sample(sampler.get(), context.get(), row);
        add(PS_PHASE_SAMPLING, repetition, token, 1, start_ns);
        chosen.push_back(next);
    }

    // Outside of what is timed: logarithms of what the phases left, and embeddings as they are.
    void keep_outputs(const ps_workload &workload, int32_t repetition) {
        if (options.embeds) {
            const float *pooled = llama_get_embeddings_seq(context.get(), 0);
            const float *embedding = pooled ? pooled : llama_get_embeddings_ith(context.get(), -1);
            if (embedding) {
                keep_output(PS_PHASE_EMBED, repetition, embedding, llama_model_n_embd(model.get()), false);
            }
            return;
        }
        const auto n_vocab = static_cast<int32_t>(probabilities.size());
        if (workload.n_prompt > 0) {
            keep_output(PS_PHASE_PREFILL, repetition, prompt_probabilities.data(), n_vocab, true);
        }
        if (workload.n_gen > 0) {
            keep_output(PS_PHASE_DECODE, repetition, probabilities.data(), n_vocab, true);
        }
    }

    void keep_output(ps_phase phase, int32_t repetition, const float *from, int32_t n_values, bool is_probability) {
        ps_output kept{phase, repetition, {}};
        for (int64_t i = 0; i < PS_N_OUTPUT_VALUES; i++) {
            const float value = from[i * n_values / PS_N_OUTPUT_VALUES];
            kept.values[i] = is_probability ? std::log(std::max(value, std::numeric_limits<float>::min())) : value;
        }
        outputs.push_back(kept);
    }

    // Both models of a speculation know every token.
    void draw_texts(const ps_workload &workload) {
        const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
        n_text = workload.n_depth + workload.n_prompt + workload.n_gen + options.n_draft;
        tokens = draw_tokens(options.seed + n_texts++, n_text * options.n_sequences, draft ? draft->n_vocab(n_vocab) : n_vocab);
    }

    llama_token *text(llama_seq_id sequence) { return tokens.data() + static_cast<ptrdiff_t>(sequence) * n_text; }

    // So many tokens of one sequence from a place on; only the last gives logits.
    llama_batch stretch(llama_seq_id sequence, int32_t at, int32_t n_tokens) {
        if (!batch) {
            return llama_batch_get_one(text(sequence) + at, n_tokens);
        }
        batch->clear();
        for (int32_t i = 0; i < n_tokens; i++) {
            batch->add(text(sequence)[at + i], at + i, sequence, i + 1 == n_tokens);
        }
        return batch->native();
    }

    // What the text's model would read of the image comes before the prompt, and is left out.
    void encode_image(int32_t repetition) {
        if (recorder) {
            ps_recorder_set_groups(recorder.get(), nullptr, 0);
        }
        ps_recorder_follow_backends(recorder.get(), true);
        const int64_t start_ns = ps_now_ns();
        images->encode();
        slow_down(PS_PHASE_ENCODE_IMAGE, start_ns);
        add(PS_PHASE_ENCODE_IMAGE, repetition, 0, images->n_tokens(), start_ns);
        ps_recorder_follow_backends(recorder.get(), false);
        if (recorder) {
            ps_recorder_end_evaluation(recorder.get());
        }
    }

    void read_prompts(const ps_workload &workload, int32_t repetition) {
        const int32_t begin = workload.n_depth, n_prompt = workload.n_prompt;
        for (llama_seq_id sequence = 0; sequence < options.n_sequences && n_prompt > 0; sequence++) {
            evaluate(options.embeds ? PS_PHASE_EMBED : PS_PHASE_PREFILL, repetition, begin,
                     stretch(sequence, begin, n_prompt));
            if (!options.embeds) {
                choose_next(prompt_probabilities, repetition, begin + n_prompt - 1);
            }
        }
    }

    // A token of each sequence.
    void step(int32_t repetition, int32_t at) {
        if (!batch) {
            evaluate(PS_PHASE_DECODE, repetition, at, stretch(0, at, 1));
            choose_next(probabilities, repetition, at);
            return;
        }
        batch->clear();
        for (llama_seq_id sequence = 0; sequence < options.n_sequences; sequence++) {
            batch->add(text(sequence)[at], at, sequence, true);
        }
        evaluate_rows(repetition, at);
    }

    void evaluate_rows(int32_t repetition, int32_t at) {
        evaluate(PS_PHASE_DECODE, repetition, at, batch->native());
        for (int32_t row = 0; row < batch->native().n_tokens; row++) {
            choose_next(probabilities, repetition, at, row);
        }
    }

    // Work of the draft, which the recorder does not see; a search of the text is too short for a phase of its own.
    template <typename Work> void let_draft(ps_phase phase, int32_t repetition, int32_t at, int32_t n_tokens, Work work) {
        ps_recorder_watch_entries(nullptr);
        const int64_t start_ns = ps_now_ns();
        work();
        if (draft->context) {
            add(phase, repetition, at, n_tokens, start_ns);
        }
        ps_recorder_watch_entries(recorder.get());
    }

    // A round: the draft proposes, the target evaluates that and one token more, and some pass. Returns what it gave.
    int32_t speculate(int32_t repetition, int32_t at) {
        let_draft(PS_PHASE_DRAFT, repetition, at, options.n_draft, [&] { draft->drafter->propose(text(0), at, decode_next); });
        batch->clear();
        for (int32_t i = 0; i <= options.n_draft; i++) {
            batch->add(text(0)[at + i], at + i, 0, true);
        }
        evaluate_rows(repetition, at);
        const int32_t n_given = draft->drafter->draw_accepted() + 1;
        if (!perfsuite::forget_from(context.get(), at + n_given) || !draft->drafter->forget_from(at + n_given)) {
            fail("llama.cpp cannot take tokens back from the cache of this model");
        }
        return n_given;
    }

    void repeat(const ps_workload &workload, int32_t repetition) {
        const int32_t begin = workload.n_depth, first = begin + workload.n_prompt, end = first + workload.n_gen;
        draw_texts(workload);
        fill_depth(workload);
        const int64_t end_to_end_ns = ps_now_ns();
        if (images) {
            encode_image(repetition);
        }
        read_prompts(workload, repetition);
        if (draft && workload.n_prompt > 0) {
            let_draft(PS_PHASE_DRAFT_PREFILL, repetition, begin, workload.n_prompt,
                      [&] { draft->drafter->read(text(0), first, options.n_batch, decode_next); });
        }
        if (between) {
            between(between_context);
        }
        for (int32_t at = first; at < end;) {
            if (draft) {
                at += speculate(repetition, at);
            } else {
                step(repetition, at++);
            }
            if (recorder && ps_recorder_is_half_full(recorder.get())) { // within the end to end, outside of its phases
                ps_recorder_drain(recorder.get());
            }
        }
        add(PS_PHASE_END_TO_END, repetition, begin, workload.n_prompt + workload.n_gen, end_to_end_ns);
        keep_outputs(workload, repetition);
        if (recorder) {
            ps_recorder_drain(recorder.get());
        }
    }

    void fill_depth(const ps_workload &workload) {
        perfsuite::clear_memory(context.get());
        for (llama_seq_id sequence = 0; sequence < options.n_sequences; sequence++) {
            for (int32_t at = 0; at < workload.n_depth; at += options.n_batch) {
                decode_or_fail(context.get(), stretch(sequence, at, std::min(options.n_batch, workload.n_depth - at)));
            }
        }
        if (draft) {
            draft->drafter->begin(options.seed);
            draft->drafter->read(text(0), workload.n_depth, options.n_batch, decode_next);
        }
        if (recorder && workload.n_depth > 0) {
            ps_recorder_clear(recorder.get());
        }
    }
};

extern "C" {

void ps_phase_copy(float *to, const float *from, size_t n) { std::memcpy(to, from, n * sizeof(float)); }

// Softmax over the logits, in place: no sampler of llama.cpp computes one for greedy decoding, so it is a pass of its own.
float ps_phase_softmax(float *values, size_t n) {
    const float peak = *std::max_element(values, values + n);
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) {
        values[i] = std::exp(values[i] - peak);
        sum += values[i];
    }
    for (size_t i = 0; i < n; i++) {
        values[i] /= sum;
    }
    return sum;
}

const char *ps_engine_version(void) {
    static const std::string text = perfsuite::engine_version();
    return text.c_str();
}

int32_t ps_engine_open(const ps_options *options, ps_engine **engine, char *error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        auto opened = std::make_unique<ps_engine>();
        opened->options = *options;
        for (size_t i = 0; i < opened->group_ends.size(); i++) {
            const uint8_t *ends = options->group_ends[i];
            opened->group_ends[i].assign(ends, ends ? ends + options->n_group_nodes[i] : ends);
        }
        opened->padding = draw_padding(options->layout_seed);
        const int64_t start_ns = ps_now_ns();
        opened->model = load(*options);
        opened->recorder = open_recorder(*options);
        ps_recorder_watch_entries(opened->recorder.get());
        opened->context = open_context(opened->model.get(), *options, opened->recorder.get());
        opened->is_encoder = options->embeds && !(perfsuite::has_memory(opened->context.get()) &&
                                                  llama_model_has_decoder(opened->model.get()));
        if (options->n_draft > 0) {
            opened->draft = std::make_unique<draft_model>(*options);
        }
        if (options->mmproj_path) {
            opened->images =
                std::make_unique<perfsuite::image_encoder>(*options, opened->model.get(), opened->recorder.get());
        }
        if (options->n_draft > 0 || options->n_sequences > 1) {
            opened->batch = std::make_unique<perfsuite::token_batch>(
                std::max({options->n_batch, options->n_sequences, options->n_draft + 1}));
        }
        opened->add(PS_PHASE_LOAD, 0, 0, 0, start_ns);
        opened->sampler.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
        llama_sampler_chain_add(opened->sampler.get(), llama_sampler_init_greedy());
        opened->probabilities.resize(
            static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(opened->model.get()))));
        opened->prompt_probabilities.resize(opened->probabilities.size());
        *engine = opened.release();
    });
}

void ps_engine_close(ps_engine *engine) { delete engine; }

void ps_engine_between(ps_engine *engine, void (*between)(void *context), void *context) {
    engine->between = between;
    engine->between_context = context;
}

int32_t ps_engine_run(ps_engine *engine, const ps_workload *workload, char *error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        const int32_t n_rows = std::max(engine->options.n_sequences, engine->options.n_draft + 1);
        const auto per_repetition = static_cast<size_t>((workload->n_gen + n_rows) * (2 + 3 * n_rows) + 4);
        engine->spans.reserve(engine->spans.size() + per_repetition * static_cast<size_t>(workload->n_repetitions));
        engine->chosen.reserve(engine->chosen.size() + per_repetition * static_cast<size_t>(workload->n_repetitions));
        if (engine->n_repetitions == 0) {
            engine->clock_start = ps_calibrate(n_brackets);
        }
        for (int32_t i = 0; i < workload->n_repetitions; i++) {
            engine->repeat(*workload, engine->n_repetitions++);
            if (engine->recorder) {
                ps_recorder_keep(engine->recorder.get());
            }
        }
        engine->clock_end = ps_calibrate(n_brackets);
    });
}

int32_t ps_engine_warm_up(ps_engine *engine, const ps_workload *workload, char *error, size_t error_bytes) {
    const size_t kept = engine->spans.size(), n_outputs = engine->outputs.size(), n_chosen = engine->chosen.size();
    const int32_t status = guarded(error, error_bytes, [&] { engine->repeat(*workload, 0); });
    engine->spans.resize(std::min(kept, engine->spans.size()));
    engine->outputs.resize(std::min(n_outputs, engine->outputs.size()));
    engine->chosen.resize(std::min(n_chosen, engine->chosen.size()));
    if (engine->recorder) {
        ps_recorder_clear(engine->recorder.get());
    }
    return status;
}

const ps_span *ps_engine_spans(const ps_engine *engine, uint64_t *n_spans) {
    *n_spans = engine->spans.size();
    return engine->spans.data();
}

const ps_output *ps_engine_outputs(const ps_engine *engine, uint64_t *n_outputs) {
    *n_outputs = engine->outputs.size();
    return engine->outputs.data();
}

const int32_t *ps_engine_chosen(const ps_engine *engine, uint64_t *n_tokens) {
    *n_tokens = engine->chosen.size();
    return engine->chosen.data();
}

const ps_recorder *ps_engine_recorder(const ps_engine *engine) { return engine->recorder.get(); }

void ps_engine_clock(const ps_engine *engine, ps_clock_point *start, ps_clock_point *end) {
    *start = engine->clock_start;
    *end = engine->clock_end;
}

int32_t ps_engine_overhead(const ps_options *options, const ps_workload *workload, int32_t n_pairs, int64_t *plain_ns,
                           int64_t *recorded_ns, int32_t prefill, char *error, size_t error_bytes) {
    return guarded(error, error_bytes, [&] {
        overhead_bench bench(*options, *workload, prefill != 0);
        const int32_t n_warm_up = bench.n_steps();
        for (int32_t pair = -n_warm_up; pair < n_pairs; pair++) {
            const overhead_bench::latencies found = bench.measure_pair(pair + n_warm_up);
            if (pair >= 0) {
                plain_ns[pair] = found.plain_ns;
                recorded_ns[pair] = found.recorded_ns;
            }
        }
        ps_recorder_watch_entries(nullptr);
    });
}

} // extern "C"
