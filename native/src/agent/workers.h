/* Workers: fresh processes that run a plan each, with a limit, and are killed with all that they have started. */
#ifndef PERFSUITE_AGENT_WORKERS_H
#define PERFSUITE_AGENT_WORKERS_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/types.h>

#include "../worker/message.h"
#include "link.h"

namespace perfsuite {

/* What starts a worker. */
struct Start {
    /* The program; its verb, plan and record come behind it, then the request's options. */
    std::string program;
    /* In which folders for plans and records are made. */
    std::string work_folder;
    /* A tree of stand-ins for /sys, or "". */
    std::string root;
    /* What workers may use, and where the looks beside them are taken from. */
    cpu_set_t processors, others;
};

/* Runs one plan: `plan` (bytes), `environment`, `command` (the words that start a worker which is another program, []
 * for this one), `options`, `limit_s`, and `looks` or nil; beside it what `beside` names, a map as `companions` takes it,
 * or nil; `stands_on` are the processors on which the agent waits, or nil.  Returns how the process ended, what it printed
 * last, its record, and the looks; a plan that fails is no error. */
Value run_plan(Link &link, const Start &start, const Value &asked);

/* Lets two processes take turns: `plans`, `environments`, `commands` and `options` of both, `leader`, `order`, `limit_s`,
 * `looks`, and `besides` of both.  After each `block` of turns a pair is broken off of which one side's threads have waited
 * for more of its time than the other's, by more than `one_sided_ratio`. */
Value run_turns(Link &link, const Start &start, const Value &asked);

/* Workers that are told lines and answer them, one after the other, until they are ended.  An answer is a line that begins
 * with the mark of one that is ready, "perfsuite-worker-ready". */
class ToldWorkers {
  public:
    ToldWorkers(Link &link, const Start &start);
    ToldWorkers(const ToldWorkers &) = delete;
    ToldWorkers &operator=(const ToldWorkers &) = delete;
    ~ToldWorkers();

    /* Starts one: `plan` (bytes), `environment`, `options`, `limit_s`, and `looks` and `beside` or nil.  Returns its
     * number. */
    Value started(const Value &asked);

    /* Starts the eBPF recorder, which is told and heard in the same way; its log goes to a file. */
    Value started_recorder(const std::vector<std::string> &command, const std::string &log);

    /* Tells one `lines`, and where `is_answered` waits for the next answer: `worker`, `limit_s`; where it `ends_input`, for
     * its end.  Returns the `answer`, or whether it `is_late`, or as its `outcome` how the worker ended before it, with
     * the `looks` beside it; and its `pid` and last `words`. */
    Value told(const Value &asked);

    /* Ends one with all that it has started: `worker`. */
    Value ended(const Value &asked);

    void end_all();

  private:
    struct Worker;

    Link &link_;
    const Start &start_;
    std::map<int64_t, std::unique_ptr<Worker>> workers_;
    int64_t n_started_ = 0;
};

/* A folder that is gone with its scope. */
class WorkFolder {
  public:
    explicit WorkFolder(const std::string &parent);
    WorkFolder(const WorkFolder &) = delete;
    WorkFolder &operator=(const WorkFolder &) = delete;
    ~WorkFolder();
    std::string path;
};

/* Runs another program for a time at most; returns how it ended (`code`, `signal`, `is_late`) and what it printed last
 * (`output`). */
Value run_program(Link &link, const std::vector<std::string> &command, const Value &environment, double limit_s);

/* What another program prints within a time; "" where it fails. */
std::string printed(Link &link, const std::vector<std::string> &command, double limit_s);

} // namespace perfsuite

#endif
