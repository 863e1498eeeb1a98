#include "run.h"

#include <cstdio>
#include <iostream>
#include <unistd.h>

#include "contention.h"
#include "engine.h"
#include "library.h"
#include "message.h"
#include "operators.h"
#include "own_process.h"
#include "probes.h"
#include "steps.h"
#include "text.h"
#include "uprobes.h"

namespace perfsuite {

namespace {

/* What a worker that takes turns prints when it is ready for the next. */
constexpr const char *READY_MARK = "perfsuite-worker-ready";

/* Where the native libraries are. */
struct Libraries {
    std::string engine;
    std::string probe;
};

void say_ready(const std::string &answer = "") {
    std::printf("%s%s%s\n", READY_MARK, answer.empty() ? "" : " ", answer.c_str());
    std::fflush(stdout);
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
    Value base_memory = resident_sample(), record, contention;
    {
        Engine engine(library, plan);
        contention = work(engine).plain();
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
    return replicate(plan, libraries, [](Engine &engine) {
        engine.warm_up();
        ContentionMark before = ContentionMark::take();
        engine.run();
        return before.until(ContentionMark::take());
    });
}

/* One replicate that is led from outside, step by step, until nobody asks for more. */
Value run_steps(const Value &arguments, const Libraries &libraries) {
    Layer layer(arguments);
    return replicate(arguments.at("llama"), libraries, [&](Engine &engine) {
        std::vector<Contention> runs;
        ContentionMark before = ContentionMark::take();
        say_ready();
        for (std::string line; std::getline(std::cin, line);) {
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

/* A warm-up and a repetition each time that a line comes in. */
Value run_turns(const Value &arguments, const Libraries &libraries) {
    const Value &plan = arguments.at("llama");
    Library library = engine_library(libraries, plan);
    Engine engine(library, plan);
    std::vector<Contention> turns;
    say_ready();
    for (std::string line; std::getline(std::cin, line);) {
        engine.warm_up(true);
        ContentionMark before = ContentionMark::take();
        engine.run();
        turns.push_back(before.until(ContentionMark::take()));
        say_ready();
    }
    return Value::Map{{"engine", engine.record()},
                      {"contention", total(turns).plain()},
                      {"peak_rss_bytes", peak_rss_bytes()}};
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

/* One round of a calibration: single operators in their order. */
Value run_operators(const Value &plan, const Libraries &libraries) {
    Library library = engine_library(libraries, plan);
    ContentionMark before = ContentionMark::take();
    Value::List times = operator_times(library, plan);
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"times_ns", std::move(times)}, {"contention", contention.plain()}};
}

/* The ceilings that forecasts are made from. */
Value run_probes(const Value &plan, const Libraries &libraries) {
    Library probes(libraries.probe);
    ContentionMark before = ContentionMark::take();
    Value ceilings = measured_ceilings(probes, plan.at("n_threads").whole32(), plan.at("budget_ms").whole());
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"ceilings", std::move(ceilings)}, {"contention", contention.plain()}};
}

/* All ceilings of the processor. */
Value run_survey(const Value &plan, const Libraries &libraries) {
    Library probes(libraries.probe);
    std::vector<int32_t> thread_counts;
    for (const Value &count : plan.at("thread_counts").list()) {
        thread_counts.push_back(count.whole32());
    }
    ContentionMark before = ContentionMark::take();
    Value ceilings =
        surveyed_ceilings(probes, plan.at("n_threads").whole32(), thread_counts, plan.at("budget_ms").whole());
    Contention contention = before.until(ContentionMark::take());
    return Value::Map{{"ceilings", std::move(ceilings)}, {"contention", contention.plain()}};
}

struct Task {
    const char *name;
    Value (*run)(const Value &arguments, const Libraries &libraries);
};

constexpr Task TASKS[] = {{"llama", run_llama},       {"turns", run_turns},         {"steps", run_steps},
                          {"uprobes", run_uprobes},   {"overhead", run_overhead},   {"operators", run_operators},
                          {"probes", run_probes},     {"survey", run_survey}};

Value ran(const Value &plan, const Libraries &libraries) {
    const std::string &name = plan.at("task").text();
    for (const Task &task : TASKS) {
        if (name == task.name) {
            return task.run(plan.at("arguments"), libraries);
        }
    }
    throw Failure("plan is for the task '" + name + "', which takes the suite with Python on the device");
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

/* The libraries that the options name, else those in lib/ beside this program. */
Libraries libraries_in(const std::vector<std::string> &options) {
    std::string beside = folder_of(real_path("/proc/self/exe")) + "/lib/";
    Libraries libraries{beside + "libperfsuite_engine.so", beside + "libperfsuite_probe.so"};
    for (const std::string &option : options) {
        size_t equals = option.find('=');
        std::string name = option.substr(0, equals);
        std::string *library = name == "--engine-library" ? &libraries.engine
                               : name == "--probe-library" ? &libraries.probe
                                                           : nullptr;
        if (!library || equals == std::string::npos) {
            throw Failure(option + ": is no option of 'perfsuite-worker run'");
        }
        *library = option.substr(equals + 1);
    }
    return libraries;
}

} // namespace

int run(const std::vector<std::string> &arguments) {
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
