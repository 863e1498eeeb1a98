/* llama.cpp as a plan wants it, through the native engine library, and what was recorded of it. */
#ifndef PERFSUITE_WORKER_ENGINE_H
#define PERFSUITE_WORKER_ENGINE_H

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "library.h"
#include "message.h"
#include "perfsuite/driver.h"

namespace perfsuite {

/* An opened model and context.  What is wrong raises an "EngineError" in llama.cpp's own words. */
class Engine {
  public:
    /* `plan` is what a `LlamaPlan` holds; it and the library outlive the engine.  A plan that draws where buffers lie
     * draws where the engine's code lies, too. */
    Engine(const Library &library, const Value &plan);
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;
    ~Engine();

    /* Runs a short version of the workload, so that buffers, caches and threads are ready; it leaves no trace.  For a
     * turn one token is enough, which streams the weights and wakes the threads. */
    void warm_up(bool is_turn = false);

    /* Runs the workload as often as the plan says, with each of its prompts, and keeps what it recorded. */
    void run();

    /* Calls this between each prompt and its answer; an empty function ends that. */
    void between(std::function<void()> called);

    /* The same two with a workload of the caller's. */
    void warm_up(const ps_workload &workload);
    void run(const ps_workload &workload);

    /* What was recorded, as `EngineRecord.to_plain` has it (perfsuite/records/events.py). */
    Value record() const;

  private:
    const Library &library_;
    const Value &plan_;
    ps_engine *engine_ = nullptr;
    std::function<void()> between_;
};

/* Runs plain and recorded contexts in turn, two of each; the sums of both kinds in ns, pair by pair. */
std::pair<Value::List, Value::List> measured_overhead(const Library &library, const Value &plan, bool is_prefill,
                                                      int32_t n_pairs);

/* The `graphs` that the engine would compute, one for each row of `batches`: tokens, outputs, positions of the cache; or
 * the `problem` with which it does not load the model. */
Value said_graphs(const Library &library, const Value &plan, const Value::List &batches);

/* The same of the one graph by which the plan's projector encodes its image. */
Value said_image_graph(const Library &library, const Value &plan);

} // namespace perfsuite

#endif
