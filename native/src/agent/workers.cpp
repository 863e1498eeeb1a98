#include "workers.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../worker/text.h"
#include "companions.h"
#include "json.h"
#include "looks.h"
#include "processes.h"
#include "restore.h"

extern char **environ;

namespace perfsuite {

namespace {

/* What a worker that takes turns prints when it is ready for the next. */
constexpr std::string_view READY_MARK = "perfsuite-worker-ready";

/* How the eBPF recorder says that it records, and that it has switched levels (perfsuite/measure/ebpf.py). */
constexpr std::string_view RECORDER_MARKS[] = {"ready", "levels "};

/* Most that is kept of what a worker prints; longest to wait for one to end that has closed its output. */
constexpr size_t KEPT_BYTES = 65536;
/* Most lines with a mark that are kept until somebody asks for them: whoever takes turns only counts them. */
constexpr size_t KEPT_ANSWERS = 1000;
constexpr double END_LIMIT_S = 10.0, END_LOOK_S = 0.005;

std::vector<std::string> child_environment(const Value &extra) {
    std::vector<std::string> variables;
    auto set = [&](const std::string &name, const std::string &value) {
        auto is_it = [&](const std::string &each) { return each.compare(0, name.size() + 1, name + "=") == 0; };
        variables.erase(std::remove_if(variables.begin(), variables.end(), is_it), variables.end());
        variables.push_back(name + "=" + value);
    };
    for (char **each = environ; *each; each++) {
        variables.push_back(*each);
    }
    set("PERFSUITE_PARENT", std::to_string(::getpid())); /* with which it ends */
    for (const auto &[name, value] : extra.map()) {
        if (name.find('=') != std::string::npos || (name + value.text()).find('\0') != std::string::npos) {
            throw Failure("a variable of a worker holds what none can");
        }
        set(name, value.text());
    }
    return variables;
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
    std::vector<char *> found;
    for (std::string &each : texts) {
        found.push_back(each.data());
    }
    found.push_back(nullptr);
    return found;
}

/* A process in a session of its own, that is heard line by line. */
class Process {
  public:
    /* What it prints goes to the file `log` where that is not "": then its errors alone are heard. */
    Process(std::vector<std::string> command, std::vector<std::string> environment, const cpu_set_t &processors,
            const Companions &beside = {}, const std::string &log = "") {
        for (const auto &each : beside) {
            for (std::string &option : each->options()) {
                command.push_back(std::move(option));
            }
        }
        int in[2], out[2];
        if (::pipe2(in, O_CLOEXEC) != 0) {
            throw Failure("no pipe can be made (" + system_text() + ")");
        }
        if (::pipe2(out, O_CLOEXEC) != 0) {
            std::string why = system_text();
            ::close(in[0]);
            ::close(in[1]);
            throw Failure("no pipe can be made (" + why + ")");
        }
        std::vector<char *> arguments = pointers(command), variables = pointers(environment);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::setsid();
            for (int each : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
                ::signal(each, SIG_DFL);
            }
            ::sched_setaffinity(0, sizeof processors, &processors);
            ::dup2(in[0], 0);
            ::dup2(out[1], 1);
            ::dup2(out[1], 2);
            for (const auto &each : beside) {
                each->in_child();
            }
            if (int file = log.empty() ? 1 : ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600); file != 1) {
                if (file < 0) {
                    ::dprintf(2, "error: %s: cannot be written (%s)\n", log.c_str(), std::strerror(errno));
                    ::_exit(127);
                }
                ::dup2(file, 1);
                ::close(file);
            }
            ::execve(arguments[0], arguments.data(), variables.data());
            ::dprintf(2, "%s: cannot be started (%s)\n", arguments[0], std::strerror(errno));
            ::_exit(127);
        }
        std::string why = pid_ < 0 ? system_text() : "";
        ::close(in[0]);
        ::close(out[1]);
        input_ = in[1];
        output_ = out[0];
        if (pid_ < 0) {
            end_input();
            close_output();
            throw Failure("a worker cannot be started (" + why + ")");
        }
        for (const auto &each : beside) {
            each->started(pid_);
        }
    }
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;
    ~Process() {
        kill();
        end_input();
        close_output();
    }

    /* How its answers begin. */
    std::vector<std::string_view> marks = {READY_MARK};

    pid_t pid() const { return pid_; }
    bool is_open() const { return output_ >= 0; }
    int input() const { return input_; }
    int output() const { return output_; }
    int n_ready() const { return n_ready_; }
    const std::string &words() const { return words_; }

    /* The newest line with a mark, "" before the first. */
    std::string_view last_answer() const { return answers_.empty() ? std::string_view() : answers_.back(); }

    /* The oldest line with a mark that was not asked for yet. */
    std::optional<std::string> next_answer() {
        if (answers_.empty()) {
            return std::nullopt;
        }
        std::string first = std::move(answers_.front());
        answers_.pop_front();
        return first;
    }

    void hear() {
        char chunk[65536];
        ssize_t n_bytes = ::read(output_, chunk, sizeof chunk);
        if (n_bytes < 0 && errno == EINTR) {
            return;
        }
        if (n_bytes > 0) {
            unread_.append(chunk, static_cast<size_t>(n_bytes));
        } else {
            close_output();
            unread_ += unread_.empty() ? "" : "\n";
        }
        for (size_t end; (end = unread_.find('\n')) != std::string::npos; unread_.erase(0, end + 1)) {
            auto is_begun = [&](std::string_view mark) { return unread_.compare(0, mark.size(), mark) == 0; };
            if (std::any_of(marks.begin(), marks.end(), is_begun)) {
                n_ready_++;
                answers_.push_back(unread_.substr(0, end));
                while (answers_.size() > KEPT_ANSWERS) {
                    answers_.pop_front();
                }
            } else {
                say(unread_.substr(0, end + 1));
            }
        }
        if (unread_.size() > KEPT_BYTES) {
            say(unread_);
            unread_.clear();
        }
    }

    /* Sends a line's end; a worker that has died says more by its output. */
    void go_on() {
        ssize_t ignored = ::write(input_, "\n", 1);
        static_cast<void>(ignored);
    }

    /* Writes as much of a text as is taken at once, all of it where nobody reads any more; how much that is. */
    size_t write(std::string_view text) {
        ::fcntl(input_, F_SETFL, O_NONBLOCK);
        ssize_t n_bytes = ::write(input_, text.data(), text.size());
        bool is_later = n_bytes < 0 && (errno == EAGAIN || errno == EINTR);
        return n_bytes >= 0 ? static_cast<size_t>(n_bytes) : is_later ? 0 : text.size();
    }

    void end_input() {
        if (input_ >= 0) {
            ::close(input_);
        }
        input_ = -1;
    }

    bool has_ended() {
        if (!is_reaped_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
            is_reaped_ = true;
        }
        return is_reaped_;
    }

    void kill() {
        if (pid_ <= 0) {
            return;
        }
        ::kill(-pid_, SIGKILL); /* what it has started, too */
        if (!is_reaped_) {
            ::kill(pid_, SIGKILL);
        }
        for (double until = monotonic_s() + END_LIMIT_S; !has_ended() && monotonic_s() < until; sleep_s(END_LOOK_S)) {
        }
    }

    Value outcome(const std::string &record) const {
        Value found;
        found.set("code", is_reaped_ && WIFEXITED(status_) ? Value(WEXITSTATUS(status_)) : Value());
        found.set("signal", is_reaped_ && WIFSIGNALED(status_) ? Value(WTERMSIG(status_)) : Value());
        found.set("output", Bytes{words_});
        std::optional<std::string> content = read_file(record);
        found.set("record", content ? Value(Bytes{std::move(*content)}) : Value());
        return found;
    }

  private:
    void say(const std::string &line) {
        words_ += line;
        if (words_.size() > KEPT_BYTES) {
            words_.erase(0, words_.size() - KEPT_BYTES);
        }
    }

    void close_output() {
        if (output_ >= 0) {
            ::close(output_);
        }
        output_ = -1;
    }

    pid_t pid_ = -1;
    int input_ = -1, output_ = -1, n_ready_ = 0, status_ = 0;
    bool is_reaped_ = false;
    std::string unread_, words_;
    std::deque<std::string> answers_;
};

/* Lets this process, which takes looks and hears records, keep off the processors that are used; where all are, it runs
 * on those that the desk names, if it names any. */
class SteppedAside {
  public:
    SteppedAside(const Start &start, const Value *named) {
        ::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t chosen = start.others;
        for (const Value &each : named ? named->list() : Value::List()) {
            int64_t number = each.whole();
            if (CPU_COUNT(&start.others) == 0 && number >= 0 && number < CPU_SETSIZE) {
                CPU_SET(static_cast<int>(number), &chosen);
            }
        }
        if (CPU_COUNT(&chosen) > 0) {
            ::sched_setaffinity(0, sizeof chosen, &chosen);
        }
    }
    SteppedAside(const SteppedAside &) = delete;
    SteppedAside &operator=(const SteppedAside &) = delete;
    ~SteppedAside() { ::sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

/* One or two workers, and the looks beside them. */
class Watch {
  public:
    Watch(Link &link, const Start &start, const Value &asked) : link_(link), start_(start), folder_(start.work_folder) {
        until_ = monotonic_s() + asked.at("limit_s").number();
        if (const Value *looks = asked.find("looks")) {
            looks_ = std::make_unique<Looks>(*looks, start.root);
            looks_->take_all();
        }
    }

    /* `words` start a worker that is another program than this one, [] do not; `beside` names what goes on beside it, as
     * `companions` takes it, nil for nothing. */
    Process &started(size_t place, const Value &plan, const Value &environment, const Value &words, const Value &options,
                     const Value *beside) {
        std::string path = folder_.path + "/" + std::to_string(place);
        made_folder(path);
        write_whole(path + "/plan", plan.bytes());
        std::vector<std::string> command;
        for (const Value &each : words.list()) {
            command.push_back(each.text());
        }
        if (command.empty()) {
            command = {start_.program, "run"};
        }
        command.insert(command.end(), {path + "/plan", record(place)});
        for (const Value &each : options.list()) {
            command.push_back(each.text());
        }
        if (beside) {
            beside_[place] = companions(*beside, environment, start_.root, link_);
        }
        processes_[place] =
            std::make_unique<Process>(command, child_environment(environment), start_.processors, beside_[place]);
        return *processes_[place];
    }

    /* Starts another program, alone in the place of a worker. */
    Process &started(const std::vector<std::string> &command, const std::string &log) {
        processes_[0] = std::make_unique<Process>(command, child_environment(Value::Map{}), start_.processors,
                                                  Companions(), log);
        return *processes_[0];
    }

    Process &process(size_t place) { return *processes_[place]; }

    /* Hears the workers until something is so; false where the time is over before. */
    template <typename Is> bool hears_until(Is is_so) {
        while (!is_so()) {
            double now_s = monotonic_s();
            if (now_s >= until_) {
                return false;
            }
            std::vector<pollfd> polled;
            std::vector<Process *> heard;
            for (auto &each : processes_) {
                if (each && each->is_open()) {
                    polled.push_back({each->output(), POLLIN, 0});
                    heard.push_back(each.get());
                }
            }
            double due_s = std::min(until_, looks_ ? looks_->due_s() : until_);
            for (const auto &each : all_beside()) {
                due_s = std::min(due_s, each->due_s());
                if (each->descriptor() >= 0) {
                    polled.push_back({each->descriptor(), POLLIN, 0});
                }
            }
            link_.wait(std::max(0.0, due_s - now_s), &polled);
            for (size_t at = 0; at < heard.size(); at++) {
                if (polled[at].revents) {
                    heard[at]->hear();
                }
            }
            if (looks_) {
                looks_->take_due();
            }
            for (Companion *each : all_beside()) {
                each->take_due();
            }
        }
        return true;
    }

    /* Tells a worker lines; false where the time is over before it has read them. */
    bool tells(size_t place, std::string_view lines) {
        Process &process = *processes_[place];
        while (!lines.empty() && process.is_open()) {
            double left_s = until_ - monotonic_s();
            if (left_s <= 0.0) {
                return false;
            }
            std::vector<pollfd> polled = {{process.input(), POLLOUT, 0}, {process.output(), POLLIN, 0}};
            link_.wait(left_s, &polled);
            if (polled[0].revents) {
                lines.remove_prefix(process.write(lines));
            }
            if (polled[1].revents) {
                process.hear();
            }
        }
        return true;
    }

    void allow_s(double limit_s) { until_ = monotonic_s() + limit_s; }

    /* Waits for one that has closed its output, and returns what it has left. */
    Value outcome(size_t place) {
        Process &process = *processes_[place];
        if (!process.is_open()) {
            for (double until = monotonic_s() + END_LIMIT_S; !process.has_ended() && monotonic_s() < until;) {
                link_.wait(END_LOOK_S);
            }
        }
        process.kill();
        Value found = process.outcome(record(place));
        for (const auto &each : beside_[place]) {
            each->tell(found);
        }
        return found;
    }

    Value::List looks() {
        if (looks_) {
            looks_->take_all();
        }
        return looks_ ? looks_->taken() : Value::List();
    }

  private:
    std::vector<Companion *> all_beside() const {
        std::vector<Companion *> found;
        for (const Companions &side : beside_) {
            for (const auto &each : side) {
                found.push_back(each.get());
            }
        }
        return found;
    }

    std::string record(size_t place) const { return folder_.path + "/" + std::to_string(place) + "/record.msgpack"; }

    Link &link_;
    const Start &start_;
    WorkFolder folder_;
    double until_;
    std::unique_ptr<Looks> looks_;
    Companions beside_[2]; /* gone after the processes */
    std::unique_ptr<Process> processes_[2];
};

} // namespace

/* One worker, or another program, alone. */
struct ToldWorkers::Worker {
    Worker(Link &link, const Start &start, const Value &asked) : watch(link, start, asked) {
        watch.started(0, asked.at("plan"), asked.at("environment"), Value::List(), asked.at("options"),
                      asked.find("beside"));
    }
    Worker(Link &link, const Start &start, const std::vector<std::string> &command, const std::string &log)
        : watch(link, start, Value::Map{{"limit_s", 0.0}}) {
        Process &process = watch.started(command, log);
        process.marks = {RECORDER_MARKS[0], RECORDER_MARKS[1]};
    }

    Watch watch;
};

ToldWorkers::ToldWorkers(Link &link, const Start &start) : link_(link), start_(start) {}

ToldWorkers::~ToldWorkers() = default;

Value ToldWorkers::started(const Value &asked) {
    workers_[++n_started_] = std::make_unique<Worker>(link_, start_, asked);
    return n_started_;
}

Value ToldWorkers::started_recorder(const std::vector<std::string> &command, const std::string &log) {
    workers_[++n_started_] = std::make_unique<Worker>(link_, start_, command, log);
    return n_started_;
}

Value ToldWorkers::told(const Value &asked) {
    auto found = workers_.find(asked.at("worker").whole());
    if (found == workers_.end()) {
        throw Failure("the worker is gone; start another one");
    }
    Watch &watch = found->second->watch;
    Process &process = watch.process(0);
    std::string lines;
    for (const Value &each : asked.at("lines").list()) {
        lines += each.text() + "\n";
    }
    SteppedAside aside(start_, nullptr);
    watch.allow_s(asked.at("limit_s").number());
    bool is_late = !watch.tells(0, lines);
    std::optional<std::string> answer;
    const Value *ends = asked.find("ends_input");
    if (!is_late && ends && ends->boolean()) {
        process.end_input();
        is_late = !watch.hears_until([&] { return !process.is_open(); });
    } else if (!is_late && asked.at("is_answered").boolean()) {
        is_late = !watch.hears_until([&] { return (answer = process.next_answer()) || !process.is_open(); });
    }
    Value told;
    told.set("answer", answer ? Value(printable(*answer)) : Value());
    told.set("is_late", is_late);
    told.set("pid", static_cast<int>(process.pid()));
    told.set("words", Bytes{process.words()});
    bool has_ended = !answer && !is_late && !process.is_open();
    told.set("outcome", has_ended ? watch.outcome(0) : Value());
    told.set("looks", has_ended ? Value(watch.looks()) : Value());
    return told;
}

Value ToldWorkers::ended(const Value &asked) {
    workers_.erase(asked.at("worker").whole());
    return nullptr;
}

void ToldWorkers::end_all() { workers_.clear(); }

Value run_plan(Link &link, const Start &start, const Value &asked) {
    Watch watch(link, start, asked);
    Process &process = watch.started(0, asked.at("plan"), asked.at("environment"), asked.at("command"), asked.at("options"),
                                     asked.find("beside"));
    process.end_input();
    SteppedAside aside(start, asked.find("stands_on"));
    double began_s = monotonic_s();
    bool is_late = !watch.hears_until([&] { return !process.is_open(); });
    Value::List looks = watch.looks();
    Value found = watch.outcome(0);
    found.set("is_late", is_late);
    found.set("pid", static_cast<int>(process.pid()));
    found.set("took_s", monotonic_s() - began_s);
    found.set("looks", std::move(looks));
    return found;
}

namespace {

/* What the turns of one side came to: how long its threads waited for a processor, and how long it took, ns. */
struct Waited {
    double waiting_ns = 0.0, taken_ns = 0.0;

    /* Takes what a worker says behind its mark; one that says nothing has not waited. */
    void add(std::string_view answer) {
        std::vector<std::string_view> words = words_of(answer);
        if (words.size() == 3) {
            waiting_ns += static_cast<double>(number_in(words[1]).value_or(0));
            taken_ns += static_cast<double>(number_in(words[2]).value_or(0));
        }
    }

    double ratio() const { return waiting_ns / std::max(1.0, taken_ns); }
};

} // namespace

Value run_turns(Link &link, const Start &start, const Value &asked) {
    Watch watch(link, start, asked);
    size_t leader = asked.at("leader").whole() ? 1 : 0;
    for (size_t place : {leader, 1 - leader}) {
        auto own = [&](const char *name) -> const Value & { return asked.at(name).list().at(place); };
        const Value *besides = asked.find("besides");
        const Value *beside = besides && !besides->list().at(place).is_nil() ? &besides->list().at(place) : nullptr;
        watch.started(place, own("plans"), own("environments"), own("commands"), own("options"), beside);
    }
    SteppedAside aside(start, asked.find("stands_on"));
    int n_taken[2] = {0, 0};
    bool is_late = false;
    std::optional<size_t> ended_early;
    auto await_ready = [&](size_t place) {
        Process &process = watch.process(place);
        is_late = !watch.hears_until([&] { return process.n_ready() > n_taken[place] || !process.is_open(); });
        if (!is_late && process.n_ready() <= n_taken[place]) {
            ended_early = place;
        }
        n_taken[place]++;
        return !is_late && !ended_early;
    };
    bool goes_on = await_ready(0) && await_ready(1);
    Waited waited[2];
    size_t n_turns = 0, block = static_cast<size_t>(asked.at("block").whole());
    for (const Value &each : asked.at("order").list()) {
        size_t place = each.whole() ? 1 : 0;
        if (goes_on) {
            watch.process(place).go_on();
            goes_on = await_ready(place);
            waited[place].add(watch.process(place).last_answer());
            n_turns++;
            if (n_turns % block == 0 &&
                std::abs(waited[0].ratio() - waited[1].ratio()) > asked.at("one_sided_ratio").number()) {
                break; /* nothing that follows would make the pair usable */
            }
        }
    }
    if (goes_on) {
        for (size_t place : {size_t{0}, size_t{1}}) {
            watch.process(place).end_input();
        }
        auto is_done = [&] { return !watch.process(0).is_open() && !watch.process(1).is_open(); };
        is_late = !watch.hears_until(is_done);
    }
    Value found;
    found.set("looks", watch.looks());
    found.set("is_late", is_late);
    found.set("ended_early", ended_early ? Value(static_cast<int>(*ended_early)) : Value());
    Value::List outcomes;
    for (size_t place : {size_t{0}, size_t{1}}) {
        outcomes.push_back(is_late ? Value() : watch.outcome(place));
    }
    found.set("outcomes", std::move(outcomes));
    return found;
}

WorkFolder::WorkFolder(const std::string &parent) : path(parent + "/XXXXXX") {
    if (!made_folder(parent) || !::mkdtemp(path.data())) {
        throw Failure(parent + ": cannot be written (" + system_text() + ")");
    }
}

WorkFolder::~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

Value run_program(Link &link, const std::vector<std::string> &command, const Value &environment, double limit_s) {
    cpu_set_t own;
    ::sched_getaffinity(0, sizeof own, &own);
    Process process(command, child_environment(environment), own);
    process.end_input();
    double until = monotonic_s() + limit_s;
    while (process.is_open() && monotonic_s() < until) {
        std::vector<pollfd> polled = {{process.output(), POLLIN, 0}};
        if (link.wait(std::max(0.0, until - monotonic_s()), &polled)) {
            process.hear();
        }
    }
    bool is_late = process.is_open();
    for (double end = monotonic_s() + END_LIMIT_S; !is_late && !process.has_ended() && monotonic_s() < end;) {
        link.wait(END_LOOK_S);
    }
    process.kill();
    Value found = process.outcome("");
    found.set("is_late", is_late);
    return found;
}

std::string printed(Link &link, const std::vector<std::string> &command, double limit_s) {
    Value found = run_program(link, command, Value::Map{}, limit_s);
    return found.at("is_late").boolean() ? "" : found.at("output").bytes();
}

} // namespace perfsuite
