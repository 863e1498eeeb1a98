/* Single operators of ggml's that a desk places, fills, launches and reads, a line each. */
#ifndef PERFSUITE_WORKER_PLACED_OPERATORS_H
#define PERFSUITE_WORKER_PLACED_OPERATORS_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "library.h"
#include "message.h"
#include "perfsuite/operator_run.h"
#include "supervised.h"
#include "told_lines.h"

namespace perfsuite {

/* The operators of one device.  Requests are words; a SPEC is OP TYPE n_inner n_outer n_tokens n_heads n_kv_heads n_past
 * as in perfsuite/operator_bench.h, and H the number of an operator.
 *
 *     check SPEC              fails with the reason why the device cannot compute it
 *     place N_COPIES SPEC     H of a new one, whose graphs hold so many of it
 *     part BASE64             has no answer: bytes behind those that came before
 *     set H INPUT             sets the whole of an input to the bytes that came
 *     output H                computes it once; how many values of F32 the output has, with the guard behind it
 *     values FIRST NUMBER     so many of them, in base 64
 *     launch H MOST UNTIL_NS  launches it, at most so often and until so much has passed: what the fastest graph took
 *     time N H H ...          launches each so often: the fastest of it, its share of a graph
 *     drop H
 *
 * The first launch of an operator is made twice: it finds buffers that nothing has touched. */
class PlacedOperators {
  public:
    /* Opens the backend of a plan for shapes; a `Failure` where ggml has none, or it takes no device here. */
    PlacedOperators(const Library &engine, const Value &plan, Progress &progress);
    PlacedOperators(const PlacedOperators &) = delete;
    PlacedOperators &operator=(const PlacedOperators &) = delete;
    ~PlacedOperators();

    /* The machine, its memory in bytes, and the device's name. */
    std::string description() const;

    /* Does what a line asks for, and returns the answer, if it has one; a `Failure` is one, too. */
    std::optional<std::string> answer(const std::string &line);

  private:
    struct Operator {
        ps_operator_run *run;
        int32_t n_copies;
        bool is_warm;
    };

    std::string checked(const Words &words);
    std::string placed(const Words &words);
    std::string set(const Words &words);
    std::string output(const Words &words);
    std::string values(const Words &words);
    std::string launched(const Words &words);
    std::string timed(const Words &words);
    std::string dropped(const Words &words);

    struct Request {
        std::string_view name;
        std::string (PlacedOperators::*answer)(const Words &words);
    };
    static const Request REQUESTS[8];

    /* The operator of a request's first number. */
    Operator &operator_of(const Words &words);
    int64_t graph_ns(Operator &placed);

    const Library &engine_;
    Progress &progress_;
    ps_operator_device *device_ = nullptr;
    std::map<int64_t, Operator> operators_;
    int64_t n_placed_ = 0;
    std::string content_;
    std::vector<float> output_;
};

/* Opens the operators of a plan and answers line after line of the input, until it ends. */
void serve_operators(const Library &engine, const Value &plan, Progress &progress);

} // namespace perfsuite

#endif
