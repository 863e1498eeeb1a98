#include "engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "own_process.h"

namespace perfsuite {

namespace {

/* In the order of `ps_phase`. */
constexpr std::array<const char *, 11> PHASES = {"load",       "prefill",       "decode", "copy",  "softmax",     "sampling",
                                                 "end_to_end", "draft_prefill", "draft",  "embed", "encode_image"};

/* By `ps_recorder_kind`. */
constexpr std::array<const char *, 7> RECORDERS = {"none", "callback", "preload", "cb_eval", "groups", "experts", "splits"};

/* llama.cpp pads a context to so many tokens. */
constexpr int64_t CONTEXT_STEP = 256;

/* Rows as perfsuite/records/engine_columns.py reads them. */
static_assert(sizeof(ps_event) == 16 && sizeof(ps_thread_event) == 32, "rows of events are read elsewhere");
static_assert(sizeof(ps_expert_choice) == 32 && sizeof(ps_split) == 24, "rows of choices and splits are read elsewhere");
static_assert(sizeof(ps_output) == 8 + 4 * PS_N_OUTPUT_VALUES, "rows of outputs are read elsewhere");

/* Room for one line of what went wrong. */
using Complaint = std::array<char, 2048>;

void check(int32_t status, const Complaint &complaint) {
    if (status != 0) {
        throw Failure(complaint[0] ? complaint.data() : "the native driver failed without a word", "EngineError");
    }
}

template <size_t N> int32_t place_in(const std::array<const char *, N> &names, const std::string &name, const char *what) {
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        std::string known;
        for (const char *each : names) {
            known += (known.empty() ? "" : ", ") + std::string(each);
        }
        throw Failure(std::string(what) + " '" + name + "' is not known; known are " + known, "EngineError");
    }
    return static_cast<int32_t>(found - names.begin());
}

const char *text_or_null(const Value &plan, const char *name) {
    const Value *found = plan.find(name);
    return found ? found->text().c_str() : nullptr;
}

/* Lengths of the prompts, one run after the other. */
std::vector<int32_t> prompts_of(const Value &plan) {
    std::vector<int32_t> lengths;
    for (const Value &length : plan.at("prompt_lengths").list()) {
        lengths.push_back(length.whole32());
    }
    return lengths.empty() ? std::vector<int32_t>{plan.at("n_prompt").whole32()} : lengths;
}

int32_t longest_prompt(const Value &plan) {
    std::vector<int32_t> lengths = prompts_of(plan);
    return *std::max_element(lengths.begin(), lengths.end());
}

int32_t context_tokens(const Value &plan) {
    int64_t n_tokens = int64_t{longest_prompt(plan)} + plan.at("n_depth").whole() + plan.at("n_gen").whole() +
                       plan.at("n_draft").whole();
    int64_t n_each = (n_tokens + CONTEXT_STEP - 1) / CONTEXT_STEP * CONTEXT_STEP;
    return Value(n_each * plan.at("n_sequences").whole()).whole32();
}

/* The driver's options, with what they point to. */
struct Options {
    ps_options native{};
    std::array<std::vector<uint8_t>, 2> group_ends;

    explicit Options(const Value &plan) {
        native.gguf_path = plan.at("gguf_path").text().c_str();
        native.type_k = plan.at("type_k").text().c_str();
        native.type_v = plan.at("type_v").text().c_str();
        native.inject_op = text_or_null(plan, "inject_op");
        native.lora_path = text_or_null(plan, "lora_path");
        native.draft_path = text_or_null(plan, "draft_path");
        native.mmproj_path = text_or_null(plan, "mmproj_path");
        native.backend_path = text_or_null(plan, "backend_library");
        const Value::List &ends = plan.at("group_ends").list();
        for (size_t phase = 0; phase < group_ends.size() && phase < ends.size(); phase++) {
            for (const Value &end : ends[phase].list()) {
                group_ends[phase].push_back(static_cast<uint8_t>(end.whole()));
            }
            native.group_ends[phase] = group_ends[phase].empty() ? nullptr : group_ends[phase].data();
            native.n_group_nodes[phase] = static_cast<int32_t>(group_ends[phase].size());
        }
        native.inject_ratio = plan.at("inject_ratio").number();
        native.inject_phase_ratio = plan.at("inject_phase_ratio").number();
        native.n_threads = plan.at("n_threads").whole32();
        native.n_ctx = context_tokens(plan);
        native.n_sequences = plan.at("n_sequences").whole32();
        native.n_draft = plan.at("n_draft").whole32();
        native.acceptance_ratio = plan.at("acceptance_ratio").number();
        native.n_batch = plan.at("n_batch").whole32();
        native.n_ubatch = plan.at("n_ubatch").whole32();
        native.flash_attn = plan.at("flash_attn").boolean();
        native.n_gpu_layers = plan.at("n_gpu_layers").whole32();
        native.recorder = place_in(RECORDERS, plan.at("recorder").text(), "recorder");
        native.seed = static_cast<uint32_t>(plan.at("seed").whole());
        native.layout_seed = static_cast<uint32_t>(plan.at("layout_seed").whole());
        for (const Value &phase : plan.at("inject_phases").list()) {
            native.inject_phases |= 1u << place_in(PHASES, phase.text(), "phase");
        }
        native.image_size = plan.at("image_size").whole32();
        native.swa_full = plan.at("swa_full").boolean();
        native.embeds = plan.at("embeds").boolean();
    }
};

/* Text as UTF-8: what is none becomes U+FFFD, byte by byte, as names come out of files that anybody may have made. */
std::string utf8(std::string_view bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
        auto first = static_cast<unsigned char>(bytes[at]);
        size_t size = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3
                      : first >= 0xf0 && first < 0xf5                   ? 4
                                                                        : 0;
        bool is_whole = size != 0 && at + size <= bytes.size();
        for (size_t next = at + 1; is_whole && next < at + size; next++) {
            is_whole = (static_cast<unsigned char>(bytes[next]) & 0xc0) == 0x80;
        }
        if (is_whole && size > 2) { /* too long a form of a character, a surrogate, or beyond the last one */
            auto second = static_cast<unsigned char>(bytes[at + 1]);
            is_whole = !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f) &&
                       !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
        }
        text += is_whole ? std::string(bytes.substr(at, size)) : "\xef\xbf\xbd";
        at += is_whole ? size : 1;
    }
    return text;
}

template <size_t N> std::string utf8_of(const char (&name)[N]) { return utf8({name, strnlen(name, N)}); }

template <typename Number> Value::List row_of(const Number (&numbers)[4]) {
    return Value::List(numbers, numbers + 4);
}

Value tensor_of(const ps_tensor &tensor) {
    return Value::List{utf8_of(tensor.name), utf8_of(tensor.type), row_of(tensor.ne), row_of(tensor.nb), tensor.root};
}

Value node_of(const ps_node &node, const std::vector<std::string> &devices) {
    Value::List sources, refused_by;
    for (int32_t index = 0; index < node.n_sources; index++) {
        sources.push_back(tensor_of(node.sources[index]));
    }
    for (size_t device = 0; device < devices.size(); device++) {
        if (node.refused_by >> device & 1) {
            refused_by.push_back(devices[device]);
        }
    }
    return Value::List{tensor_of(node.tensor), utf8_of(node.op), node.timed != 0, node.fused_into_previous != 0,
                       std::move(sources),     std::move(refused_by)};
}

/* Names that a function hands out by their numbers, up to the first that there is not. */
template <typename Named> std::vector<std::string> names_of(Named named, const ps_recorder *recorder) {
    std::vector<std::string> names;
    while (const char *name = named(recorder, static_cast<int32_t>(names.size()))) {
        names.push_back(utf8(name));
    }
    return names;
}

/* The content of an array that a function hands out with its number of rows. */
template <typename Rows, typename Owner> Bytes array_of(Rows rows, const Owner *owner) {
    uint64_t n_rows = 0;
    const auto *first = rows(owner, &n_rows);
    return {std::string(reinterpret_cast<const char *>(first), n_rows * sizeof *first)};
}

/* The ids of all choices, which lie one behind the other. */
Bytes expert_ids(const Library &library, const ps_recorder *recorder) {
    uint64_t n_choices = 0, n_ids = 0;
    const ps_expert_choice *choices = PS_FUNCTION(library, ps_recorder_expert_choices)(recorder, &n_choices);
    if (n_choices != 0) {
        const ps_expert_choice &last = choices[n_choices - 1];
        n_ids = last.first_id + static_cast<uint64_t>(last.n_tokens) * static_cast<uint64_t>(last.n_used);
    }
    const int32_t *ids = PS_FUNCTION(library, ps_recorder_expert_ids)(recorder);
    return {n_ids ? std::string(reinterpret_cast<const char *>(ids), n_ids * sizeof *ids) : ""};
}

Value graphs_of(const Library &library, const ps_recorder *recorder) {
    std::vector<std::string> devices = names_of(PS_FUNCTION(library, ps_recorder_device_name), recorder);
    auto nodes_of = PS_FUNCTION(library, ps_recorder_nodes);
    int32_t n_graphs = PS_FUNCTION(library, ps_recorder_n_graphs)(recorder);
    Value::List graphs;
    for (int32_t graph = 0; graph < n_graphs; graph++) {
        int32_t n_nodes = 0;
        const ps_node *nodes = nodes_of(recorder, graph, &n_nodes);
        Value::List rows;
        for (int32_t index = 0; index < n_nodes; index++) {
            rows.push_back(node_of(nodes[index], devices));
        }
        graphs.push_back(std::move(rows));
    }
    return graphs;
}

/* Adds what a recorder has; all is empty where there was none. */
void add_recorded(Value &record, const Library &library, const ps_recorder *recorder) {
    const char *const arrays[] = {"events", "thread_events", "expert_choices", "expert_ids", "splits"};
    if (!recorder) {
        record.set("graphs", Value::List{});
        record.set("n_dropped", 0);
        for (const char *name : arrays) {
            record.set(name, Bytes{});
        }
        record.set("backends", Value::List{});
        return;
    }
    record.set("graphs", graphs_of(library, recorder));
    record.set("n_dropped", PS_FUNCTION(library, ps_recorder_dropped)(recorder));
    record.set("events", array_of(PS_FUNCTION(library, ps_recorder_events), recorder));
    record.set("thread_events", array_of(PS_FUNCTION(library, ps_recorder_thread_events), recorder));
    record.set("expert_choices", array_of(PS_FUNCTION(library, ps_recorder_expert_choices), recorder));
    record.set("expert_ids", expert_ids(library, recorder));
    record.set("splits", array_of(PS_FUNCTION(library, ps_recorder_splits), recorder));
    std::vector<std::string> backends = names_of(PS_FUNCTION(library, ps_recorder_backend_name), recorder);
    record.set("backends", Value::List(backends.begin(), backends.end()));
}

} // namespace

Engine::Engine(const Library &library, const Value &plan) : library_(library), plan_(plan) {
    Options options(plan);
    Complaint complaint{};
    check(PS_FUNCTION(library, ps_engine_open)(&options.native, &engine_, complaint.data(), complaint.size()), complaint);
    refuse_foreign_libraries(plan.at("library_dir").text()); // with the backend that was loaded
    if (options.native.layout_seed != 0) {
        own_code_pages(plan.at("library_dir").text());
    }
}

Engine::~Engine() { PS_FUNCTION(library_, ps_engine_close)(engine_); }

void Engine::warm_up(bool is_turn) {
    int32_t n_prompt = longest_prompt(plan_), n_depth = plan_.at("n_depth").whole32();
    if (is_turn) {
        n_prompt = plan_.at("prompt_lengths").list().empty() ? std::min(n_prompt, 1) : n_prompt;
        n_depth = 0;
    }
    warm_up({n_prompt, std::min(plan_.at("n_gen").whole32(), 1), n_depth, 1});
}

void Engine::warm_up(const ps_workload &workload) {
    Complaint complaint{};
    check(PS_FUNCTION(library_, ps_engine_warm_up)(engine_, &workload, complaint.data(), complaint.size()), complaint);
}

void Engine::between(std::function<void()> called) {
    between_ = std::move(called);
    void (*call)(void *) = [](void *context) { (*static_cast<std::function<void()> *>(context))(); };
    PS_FUNCTION(library_, ps_engine_between)(engine_, between_ ? call : nullptr, &between_);
}

void Engine::run() {
    int32_t n_gen = plan_.at("n_gen").whole32(), n_depth = plan_.at("n_depth").whole32();
    int32_t n_repetitions = plan_.at("n_repetitions").whole32();
    for (int32_t n_prompt : prompts_of(plan_)) {
        run({n_prompt, n_gen, n_depth, n_repetitions});
    }
}

void Engine::run(const ps_workload &workload) {
    Complaint complaint{};
    check(PS_FUNCTION(library_, ps_engine_run)(engine_, &workload, complaint.data(), complaint.size()), complaint);
}

Value Engine::record() const {
    ps_clock_point first, last;
    PS_FUNCTION(library_, ps_engine_clock)(engine_, &first, &last);
    uint64_t n_spans = 0;
    const ps_span *spans = PS_FUNCTION(library_, ps_engine_spans)(engine_, &n_spans);
    Value::List rows;
    for (const ps_span *span = spans; span < spans + n_spans; span++) {
        rows.push_back(Value::List{PHASES.at(static_cast<size_t>(span->phase)), span->repetition, span->token,
                                   span->n_tokens, span->start_ns, span->end_ns});
    }
    Value record;
    record.set("engine_version", utf8(PS_FUNCTION(library_, ps_engine_version)()));
    record.set("spans", std::move(rows));
    record.set("outputs", array_of(PS_FUNCTION(library_, ps_engine_outputs), engine_));
    record.set("chosen_tokens", array_of(PS_FUNCTION(library_, ps_engine_chosen), engine_));
    add_recorded(record, library_, PS_FUNCTION(library_, ps_engine_recorder)(engine_));
    record.set("clock", Value::List{first.ticks, first.ns, last.ticks, last.ns});
    return record;
}

std::pair<Value::List, Value::List> measured_overhead(const Library &library, const Value &plan, bool is_prefill,
                                                      int32_t n_pairs) {
    Options options(plan);
    ps_workload workload{plan.at("n_prompt").whole32(), plan.at("n_gen").whole32(), 0, 1};
    std::vector<int64_t> plain(static_cast<size_t>(n_pairs)), recorded(static_cast<size_t>(n_pairs));
    Complaint complaint{};
    check(PS_FUNCTION(library, ps_engine_overhead)(&options.native, &workload, n_pairs, plain.data(), recorded.data(),
                                                   is_prefill, complaint.data(), complaint.size()),
          complaint);
    return {Value::List(plain.begin(), plain.end()), Value::List(recorded.begin(), recorded.end())};
}

namespace {

/* What the engine says of graphs: those that a call adds to a recorder, or why it cannot load what they are of. */
template <typename Say> Value said_by(const Library &library, Say say) {
    auto close = PS_FUNCTION(library, ps_recorder_close);
    std::unique_ptr<ps_recorder, decltype(close)> recorder(
        PS_FUNCTION(library, ps_recorder_open)(PS_RECORDER_CALLBACK, 1, 1), close);
    if (!recorder) {
        throw Failure("no memory for graphs", "EngineError");
    }
    Complaint complaint{};
    int32_t status = say(recorder.get(), complaint);
    if (status == PS_NO_MODEL) {
        return Value::Map{{"graphs", Value::List{}}, {"problem", utf8(complaint.data())}};
    }
    check(status, complaint);
    return Value::Map{{"graphs", graphs_of(library, recorder.get())}};
}

} // namespace

Value said_graphs(const Library &library, const Value &plan, const Value::List &batches) {
    Options options(plan);
    std::vector<ps_graph_request> requests;
    for (const Value &batch : batches) {
        const Value::List &row = batch.list();
        requests.push_back({row.at(0).whole32(), row.at(1).whole32(), row.at(2).whole32()});
    }
    return said_by(library, [&](ps_recorder *recorder, Complaint &complaint) {
        return PS_FUNCTION(library, ps_engine_graphs)(&options.native, requests.data(),
                                                      static_cast<int32_t>(requests.size()), recorder, complaint.data(),
                                                      complaint.size());
    });
}

Value said_image_graph(const Library &library, const Value &plan) {
    Options options(plan);
    return said_by(library, [&](ps_recorder *recorder, Complaint &complaint) {
        return PS_FUNCTION(library, ps_engine_image_graph)(&options.native, recorder, complaint.data(), complaint.size());
    });
}

} // namespace perfsuite
