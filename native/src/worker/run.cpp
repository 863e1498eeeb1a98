#include "run.h"

#include <iostream>
#include <unistd.h>

#include "../launcher/devices.h"
#include "../launcher/launch_steps.h"
#include "../launcher/placed_kernels.h"
#include "contention.h"
#include "engine.h"
#include "library.h"
#include "message.h"
#include "model_tensors.h"
#include "operators.h"
#include "own_output.h"
#include "own_process.h"
#include "perfsuite/live.h"
#include "placed_operators.h"
#include "probes.h"
#include "steps.h"
#include "supervised.h"
#include "text.h"
#include "uprobes.h"

namespace perfsuite {

namespace {

/* What a worker that takes turns prints when it is ready for the next. */
constexpr const char *READY_MARK = "perfsuite-worker-ready";

/* Where the native libraries are, and the descriptors of a live queue; -1 where nobody watches. */
struct Libraries {
    std::string engine;
    std::string probe;
    int live_memory = -1;
    int live_event = -1;
};

/* Pushes what the driver does to whoever watches the run, but for warm-ups. */
class Live {
  public:
    Live(const Library &engine, const Libraries &asked) : engine_(engine), is_open_(asked.live_memory >= 0) {
        if (is_open_ && !PS_FUNCTION(engine, ps_live_open)(PS_FUNCTION(engine, ps_live_map)(asked.live_memory), asked.live_event)) {
            throw Failure("the live queue cannot be opened: its memory cannot be mapped");
        }
    }

    void warm_up(Engine &engine, bool is_turn = false) {
        pause(true);
        engine.warm_up(is_turn);
        pause(false);
    }

    void pause(bool is_paused) const {
        if (is_open_) {
            PS_FUNCTION(engine_, ps_live_pause)(is_paused);
        }
    }

  private:
    const Library &engine_;
    bool is_open_;
};

void say_ready(const std::string &answer = "") {
    say_line(READY_MARK + (answer.empty() ? "" : " " + answer));
}

/* The engine library, whose llama.cpp is the build that the plan was made for. */
Library engine_library(const Libraries &libraries, const Value &plan) {
    Library library(libraries.engine, Library::Loading::GLOBAL);
    refuse_other_engine(plan.at("library_dir").text(), plan.at("engine_build_id").text());
    return library;
}

/* What a replicate comes to: `work` does what is measured on an open engine, and returns its contention. */
template <typename Work> Value replicate(const Value &plan, const Libraries &libraries, Work work) {
    Library library = engine_library(libraries, plan);
    Live live(library, libraries);
    Value base_memory = resident_sample(), record, contention;
    {
        Engine engine(library, plan);
        contention = work(engine, live).plain();
        record = engine.record();
    }
    int64_t resident_bytes = peak_rss_bytes();
    return Value::Map{
        {"engine", std::move(record)},
        {"contention", std::move(contention)},
        {"base_memory", std::move(base_memory)},
        {"peak_rss_bytes", resident_bytes},
        {"sentinels", measured_sentinels(Library(libraries.probe), plan.at("n_threads").whole32())},
        {"pid", static_cast<int64_t>(getpid())},
    };
}

/* One replicate: load, warm up, run a prompt and a generation. */
Value run_llama(const Value &plan, const Libraries &libraries) {
    return replicate(plan, libraries, [](Engine &engine, Live &live) {
        live.warm_up(engine);
        ContentionMark before = ContentionMark::take();
        engine.run();
        return before.until(ContentionMark::take());
    });
}

/* One replicate that is led from outside, step by step, until nobody asks for more. */
Value run_steps(const Value &arguments, const Libraries &libraries) {
    Layer layer(arguments);
    return replicate(arguments.at("llama"), libraries, [&](Engine &engine, Live &live) {
        std::vector<Contention> runs;
        ContentionMark before = ContentionMark::take();
        say_ready();
        for (std::string line; std::getline(std::cin, line);) {
            bool is_run = line.compare(0, 4, "run ") == 0;
            live.pause(!is_run);
            say_ready(taken_step(engine, layer, line, runs));
        }
        return runs.empty() ? before.until(ContentionMark::take()) : total(runs);
    });
}

/* One replicate with kernel probes on the functions that the driver calls, set after the warm-up. */
Value run_uprobes(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    Engine engine(library, plan);
    engine.warm_up();
    Uprobes probes(library, arguments.at("functions").list());
    ContentionMark before = ContentionMark::take();
    probes.count(true);
    engine.run();
    probes.count(false);
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"engine", engine.record()}, {"contention", contention.plain()}, {"rings", probes.rings()}};
}

/* A warm-up and a repetition each time that a line comes in; it says how long its threads waited, of how long, ns. */
Value run_turns(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    Live live(library, libraries);
    Engine engine(library, plan);
    std::vector<Contention> turns, prompts, answers;
    say_ready();
    for (std::string line; std::getline(std::cin, line);) {
        live.warm_up(engine, true);
        ContentionMark before = ContentionMark::take();
        std::vector<ContentionMark> between;
        engine.between([&] { between.push_back(ContentionMark::take()); });
        engine.run();
        engine.between({});
        ContentionMark after = ContentionMark::take();
        turns.push_back(before.until(after));
        if (between.size() == 1) {
            prompts.push_back(before.until(between[0]));
            answers.push_back(between[0].until(after));
        }
        say_ready(std::to_string(turns.back().waiting_ns.value_or(0)) + " " + std::to_string(turns.back().wall_ns));
    }
    Value payload = Value::Map{{"engine", engine.record()},
                               {"contention", total(turns).plain()},
                               {"peak_rss_bytes", peak_rss_bytes()}};
    if (!turns.empty() && prompts.size() == turns.size()) {
        payload.set("contention_by_phase",
                    Value::Map{{"prefill", total(prompts).plain()}, {"decode", total(answers).plain()}});
    }
    return payload;
}

/* Pairs of one plain and one recorded context in one process. */
Value run_overhead(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    ContentionMark before = ContentionMark::take();
    bool is_prefill = arguments.at("phase").text() == "prefill";
    auto [plain, recorded] = measured_overhead(library, plan, is_prefill, arguments.at("n_pairs").whole32());
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"plain_ns", std::move(plain)},
                      {"recorded_ns", std::move(recorded)},
                      {"contention", contention.plain()}};
}

/* The graphs that the engine would compute; nothing is measured. */
Value run_graphs(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    return said_graphs(library, plan, arguments.at("batches").list());
}

/* The graph by which a projector would encode an image. */
Value run_image_graph(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    return said_image_graph(library, plan);
}

/* One round of a calibration: single operators in their order. */
Value run_operators(const Value &plan, const Libraries &libraries) {
    Library library = engine_library(libraries, plan);
    ContentionMark before = ContentionMark::take();
    Value::List times = operator_times(library, plan);
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"times_ns", std::move(times)}, {"contention", contention.plain()}};
}

/* The tensors of a model that is no more than its metadata. */
Value run_tensors(const Value &plan, const Libraries &libraries) {
    return model_tensors(engine_library(libraries, plan), plan);
}

/* Operators that are placed and launched as somebody asks; one that crashes or hangs ends the work, and is named. */
Value run_shapes(const Value &plan, const Libraries &libraries) {
    std::optional<Crash> crash = supervised(plan.at("step_limit_s").number(), [&](Progress &progress) {
        Library library = engine_library(libraries, plan);
        serve_operators(library, plan, progress);
    });
    if (crash) {
        say_crashed(*crash);
    }
    return Value::Map{};
}

/* The ceilings that forecasts are made from, or a survey of all of the processor's by the numbers of threads. */
Value run_probes(const Value &plan, const Libraries &libraries) {
    Library probes(libraries.probe);
    std::vector<int32_t> thread_counts;
    for (const Value &count : plan.at("thread_counts").list()) {
        thread_counts.push_back(count.whole32());
    }
    int32_t n_threads = plan.at("n_threads").whole32();
    int64_t budget_ms = plan.at("budget_ms").whole();
    ContentionMark before = ContentionMark::take();
    Value ceilings = thread_counts.empty() ? measured_ceilings(probes, n_threads, budget_ms)
                                           : surveyed_ceilings(probes, n_threads, thread_counts, budget_ms);
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"ceilings", std::move(ceilings)}, {"contention", contention.plain()}};
}

/* The OpenCL devices; and of a layer that the environment names, whether OpenCL's loader has brought it in. */
Value run_opencl_devices(const Value &plan, const Libraries &) {
    OpenCl cl;
    Value told = Value::Map{{"devices", described_devices(cl)}, {"limits", device_limits(cl)}};
    if (const Value *layer = plan.find("layer")) {
        told.set("has_layer", Library::is_loaded(layer->text()));
    }
    return told;
}

/* Launches of kernels of OpenCL, all of which the plan says. */
Value run_launches(const Value &plan, const Libraries &libraries) {
    ContentionMark before = ContentionMark::take();
    Value told = taken_steps(OpenCl(), plan);
    told.set("contention", before.until(ContentionMark::take()).plain());
    told.set("peak_rss_bytes", peak_rss_bytes());
    if (const Value *n_threads = plan.find("n_threads"); n_threads && told.find("steps")) {
        told.set("sentinels", measured_sentinels(Library(libraries.probe), n_threads->whole32()));
    }
    return told;
}

/* Kernels that are placed and launched as somebody asks, supervised as shapes are. */
Value run_launch_session(const Value &plan, const Libraries &) {
    std::optional<Crash> crash = supervised(plan.at("step_limit_s").number(),
                                            [&](Progress &progress) { serve_kernels(OpenCl(), plan, progress); });
    if (crash) {
        say_crashed(*crash);
    }
    return Value::Map{};
}

struct Task {
    const char *name;
    Value (*run)(const Value &arguments, const Libraries &libraries);
};

constexpr Task TASKS[] = {{"llama", run_llama},       {"turns", run_turns},         {"steps", run_steps},
                          {"uprobes", run_uprobes},   {"overhead", run_overhead},   {"operators", run_operators},
                          {"shapes", run_shapes},     {"probes", run_probes},       {"launches", run_launches},
                          {"opencl_devices", run_opencl_devices},
                          {"launch_session", run_launch_session}, {"graphs", run_graphs},
                          {"image_graph", run_image_graph},
                          {"tensors", run_tensors}};

Value ran(const Value &plan, const Libraries &libraries) {
    const std::string &name = plan.at("task").text();
    for (const Task &task : TASKS) {
        if (name == task.name) {
            return task.run(plan.at("arguments"), libraries);
        }
    }
    throw Failure("the task '" + name + "' takes Python, by which no board is measured; run it on this machine");
}

/* Refuses a plan of another suite. */
void check_header(const Value &plan) {
    if (int64_t schema = plan.at("schema").whole(); schema != PS_PLAN_SCHEMA) {
        throw Failure("plan has schema " + std::to_string(schema) + ", this worker reads " +
                      std::to_string(PS_PLAN_SCHEMA) + "; use one version on both sides");
    }
    if (const std::string &version = plan.at("suite_version").text(); version != PS_VERSION) {
        throw Failure("plan was made by perfsuite " + version + ", this is " PS_VERSION
                      "; install the same version on both sides");
    }
}

/* The libraries and descriptors that the options name; libraries are else those in lib/ beside this program. */
Libraries libraries_in(const std::vector<std::string> &options) {
    std::string beside = folder_of(own_program()) + "/lib/";
    Libraries libraries{beside + "libperfsuite_engine.so", beside + "libperfsuite_probe.so"};
    const std::pair<const char *, std::string *> paths[] = {{"--engine-library", &libraries.engine},
                                                            {"--probe-library", &libraries.probe}};
    const std::pair<const char *, int *> descriptors[] = {{"--live-memory", &libraries.live_memory},
                                                          {"--live-event", &libraries.live_event}};
    for (const std::string &option : options) {
        size_t equals = option.find('=');
        std::string name = option.substr(0, equals), value = equals == std::string::npos ? "" : option.substr(equals + 1);
        bool is_known = false;
        for (auto [known, path] : paths) {
            if (name == known && !value.empty()) {
                *path = value;
                is_known = true;
            }
        }
        for (auto [known, descriptor] : descriptors) {
            if (auto number = number_in(value); name == known && number) {
                *descriptor = static_cast<int>(*number);
                is_known = true;
            }
        }
        if (!is_known) {
            throw Failure(option + ": is no option of 'perfsuite-worker run'");
        }
    }
    return libraries;
}

} // namespace

int run(const std::vector<std::string> &arguments) {
    keep_own_output();
    Value plan = unpack(required_file(arguments.at(0)));
    check_header(plan);
    Value payload = ran(plan, libraries_in({arguments.begin() + 2, arguments.end()}));
    Value record = Value::Map{{"schema", PS_PLAN_SCHEMA},
                              {"suite_version", PS_VERSION},
                              {"task", plan.at("task")},
                              {"payload", std::move(payload)}};
    write_whole(arguments.at(1), pack(record));
    return 0;
}

} // namespace perfsuite
