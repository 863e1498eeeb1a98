#include "serve.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../worker/message.h"
#include "../worker/text.h"
#include "files.h"
#include "json.h"
#include "left_files.h"
#include "link.h"
#include "load.h"
#include "lock.h"
#include "places.h"
#include "processes.h"
#include "programs.h"
#include "recorders.h"
#include "restore.h"
#include "workers.h"

namespace perfsuite {

namespace {

constexpr const char *LOST_LOCK =
    "the device's lock was lost while this ran, and somebody else may have used the device; run again";

constexpr double PROPERTY_LIMIT_S = 10.0, MOST_LOOK_S = 10.0, LONGEST_SILENCE_S = 86400.0;

/* Longest complaint about what cannot be read. */
constexpr double LAST_WORD_S = 2.0;

Value versions() {
    Value found;
    found.set("suite_version", PS_VERSION);
    found.set("schema", PS_PLAN_SCHEMA);
    return found;
}

bool has_only(const Value &map, const std::vector<std::string_view> &names) {
    size_t n_found = 0;
    for (const auto &each : map.map()) {
        n_found += std::count(names.begin(), names.end(), each.first);
    }
    return n_found == names.size() && map.map().size() == names.size();
}

/* The processors of a set, and the set of some. */
Value::List numbers_in(const cpu_set_t &set) {
    Value::List numbers;
    for (int each = 0; each < CPU_SETSIZE; each++) {
        if (CPU_ISSET(each, &set)) {
            numbers.push_back(each);
        }
    }
    return numbers;
}

/* A text like "0-3,6" of the kernel's; 0 where there is none. */
int counted_processors(const std::string &path) {
    std::string text = read_line(path).value_or("");
    int n_found = 0;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(',', at), text.size()), dash = text.find('-', at);
        std::string_view whole(text);
        auto first = number_in(whole.substr(at, std::min(dash, end) - at));
        auto last = dash < end ? number_in(whole.substr(dash + 1, end - dash - 1)) : first;
        n_found += first && last && *last >= *first && *last < CPU_SETSIZE ? static_cast<int>(*last - *first) + 1 : 0;
        at = end + 1;
    }
    return n_found;
}

/* The value of "--NAME=VALUE". */
std::string option(const std::vector<std::string> &arguments, const std::string &name) {
    for (const std::string &each : arguments) {
        if (each.compare(0, name.size() + 3, "--" + name + "=") == 0) {
            return each.substr(name.size() + 3);
        }
    }
    return "";
}

/* Everything that a desk can ask of a board that it has. */
class Service {
  public:
    Service(Link &link, const std::vector<std::string> &arguments)
        : link_(link), root_(option(arguments, "root")), places_(Places::own(option(arguments, "cache"))) {
        std::string worker = option(arguments, "worker"), work_folder = option(arguments, "work");
        start_.program = worker.empty() ? places_.program : worker;
        start_.root = root_;
        start_.work_folder = work_folder.empty() ? places_.cache_dir + "/work" : work_folder;
        ::sched_getaffinity(0, sizeof start_.processors, &start_.processors);
        CPU_ZERO(&start_.others);
        journal_ = std::make_unique<Journal>(places_.state_folder(), root_);
    }

    /* Takes the hello, and the board where the desk claims it; whether the desk's suite is this one, and the board is to
     * be had. */
    bool is_greeted(const Value &request) {
        const Value &hello = request.at("arguments");
        std::optional<Claim> claim;
        if (!is_understood(request, claim)) {
            link_.refuse(versions());
            return false;
        }
        link_.set_silence_limit_s(hello.at("silence_limit_s").number());
        try {
            if (claim) {
                take(*claim, hello.at("conditions").at("processors"));
            }
        } catch (const Failure &failure) {
            link_.answer(request.at("id"), failure);
            return false;
        }
        link_.answer(request.at("id"), welcome());
        return true;
    }

    void serve_one() {
        Value request = link_.next_request();
        const Value &id = request.at("id");
        Value value;
        try {
            value = answered(request.at("kind").text(), request.at("arguments"));
            link_.answer(id, std::move(value));
        } catch (const Failure &failure) {
            link_.answer(id, failure);
        } catch (const std::exception &error) { /* a defect, too, is told to the desk in one line */
            link_.answer(id, Failure(error.what()));
        }
    }

    /* Kills, restores and unlocks; what that came to. */
    Value let_go() {
        told_workers_.end_all();
        load_.set(0);
        kill_children();
        left_files_.begin(false);
        if (!is_held_) {
            return nullptr;
        }
        for (std::string &each : journal_->give_back()) {
            notes_.push_back(std::move(each));
        }
        lock_.give_back();
        return held();
    }

  private:
    bool is_understood(const Value &request, std::optional<Claim> &claim) const {
        try {
            const Value &hello = request.at("arguments"), &conditions = hello.at("conditions");
            if (!hello.at("claim").is_nil()) {
                claim = Claim::from_value(hello.at("claim"));
            }
            conditions.at("processors").list();
            double silence_limit_s = hello.at("silence_limit_s").number();
            return request.at("kind").text() == "hello" && hello.at("suite_version").text() == PS_VERSION &&
                   hello.at("schema").whole() == PS_PLAN_SCHEMA && silence_limit_s > 0 &&
                   silence_limit_s <= LONGEST_SILENCE_S &&
                   has_only(hello, {"claim", "conditions", "silence_limit_s", "suite_version", "schema"}) &&
                   (!claim || has_only(hello.at("claim"), {"name", "user", "host", "run_id", "purpose", "wait_s",
                                                           "lock_folder", "is_shared"})) &&
                   has_only(conditions, {"processors", "governor", "gpu_governor", "start_below_celsius",
                                         "cooling_limit_s", "thermal_zones", "least_battery_ratio"});
        } catch (const Failure &) {
            return false;
        }
    }

    void take(const Claim &claim, const Value &processors) {
        auto wait = [&](double seconds) { link_.wait(seconds); };
        Value holder = claim.is_shared ? Value() : lock_holder(claim.lock_folder);
        if (!holder.is_nil() && holder.at("run_id").text() == claim.run_id) { /* left behind on a lost link */
            end_holder(holder, claim.lock_folder, wait);
        }
        lock_.take(claim, places_.state_folder(), [&](const std::string &text) { link_.note(text); }, wait);
        is_held_ = true;
        notes_ = lock_.notes;
        std::error_code ignored;
        std::filesystem::remove_all(start_.work_folder, ignored); /* whoever has left something there is gone */
        bind_to(processors.list());
        for (const std::string &folder : lock_.left_folders) {
            for (std::string &each : Journal(folder, root_).restore_leftovers()) {
                notes_.push_back(std::move(each));
            }
        }
        for (std::string &each : journal_->restore_leftovers(lock_.is_shared())) {
            notes_.push_back(std::move(each));
        }
    }

    /* Lets this process, and all that it starts, run on these processors only; an empty list leaves all. */
    void bind_to(const Value::List &wanted) {
        cpu_set_t chosen;
        std::string missing, usable;
        CPU_ZERO(&chosen);
        for (const Value &each : wanted) {
            int64_t number = each.whole();
            if (number >= 0 && number < CPU_SETSIZE && CPU_ISSET(static_cast<int>(number), &start_.processors)) {
                CPU_SET(static_cast<int>(number), &chosen);
            } else {
                missing += (missing.empty() ? "" : ", ") + std::to_string(number);
            }
        }
        if (!missing.empty()) {
            for (const Value &each : numbers_in(start_.processors)) {
                usable += (usable.empty() ? "" : ", ") + std::to_string(each.whole());
            }
            throw Failure("processors " + missing + " are not there; name some of " + usable +
                              " in [conditions] processors",
                          "DeviceError");
        }
        if (!wanted.empty()) {
            for (int each = 0; each < ::sysconf(_SC_NPROCESSORS_CONF) && each < CPU_SETSIZE; each++) {
                if (!CPU_ISSET(each, &chosen)) {
                    CPU_SET(each, &start_.others);
                }
            }
            start_.processors = chosen;
            ::sched_setaffinity(0, sizeof chosen, &chosen);
        }
    }

    Value welcome() const {
        Value found;
        found.set("program", PS_VERSION);
        found.set("is_root", ::geteuid() == 0);
        found.set("home", places_.home);
        found.set("bundle", places_.bundle);
        found.set("cache_dir", places_.cache_dir);
        return found;
    }

    Value answered(const std::string &kind, const Value &asked) {
        if (kind == "machine") {
            return machine();
        }
        if (kind == "snapshot") {
            return snapshot(root_, asked.at("patterns").list(), asked.at("links").list());
        }
        if (kind == "held") {
            return held();
        }
        if (kind == "set") {
            return journal_->changed(asked.at("changes").list());
        }
        if (kind == "unset") {
            std::vector<std::string> lines = journal_->given_back(asked.at("changes").list());
            return Value::List(lines.begin(), lines.end());
        }
        if (kind == "may_write") {
            return journal_->may_write(asked.at("paths").list());
        }
        if (kind == "set_load") {
            load_.set(asked.at("n_processes").whole());
            return nullptr;
        }
        if (kind == "find_program") {
            return found_program(asked);
        }
        if (kind == "run_program") {
            return ran_program(link_, start_.work_folder, asked);
        }
        if (kind == "competition") {
            return competition(std::min(asked.at("look_s").number(), MOST_LOOK_S), asked.find("desk_pid"));
        }
        if (kind == "run") {
            return run_plan(link_, start_, asked);
        }
        if (kind == "run_in_turns") {
            return run_turns(link_, start_, asked);
        }
        if (kind == "recorder_facts") {
            return recorder_facts(link_, places_);
        }
        if (kind == "start_recorder") {
            return start_recorder(told_workers_, left_files_, places_, asked);
        }
        if (kind == "describe_engine") {
            return describe_engine(link_, start_, asked);
        }
        if (kind == "run_folder") {
            return left_files_.begin(asked.at("is_wanted").boolean());
        }
        if (kind == "left_files") {
            return left_files_.found();
        }
        if (kind == "file") {
            return left_files_.piece(asked.at("name").text(), asked.at("offset").whole(), asked.at("most_bytes").whole());
        }
        if (kind == "start_worker") {
            return told_workers_.started(asked);
        }
        if (kind == "tell_worker") {
            return told_workers_.told(asked);
        }
        if (kind == "end_worker") {
            return told_workers_.ended(asked);
        }
        if (kind == "put_weights") {
            return weights(asked.at("digest").text());
        }
        if (kind == "look") {
            return looked_at(asked.at("path").text());
        }
        if (kind == "digests") {
            return folder_digests(asked.at("folder").text(), [&] { link_.look(); });
        }
        if (kind == "keep") {
            auto look = [&] { link_.look(); };
            make_folder(asked.at("folder").text(), asked.at("files"), asked.at("links"), asked.at("contents"), look);
            return nullptr;
        }
        if (kind == "board_number") {
            return board_number();
        }
        throw Failure("the agent was asked for '" + printable(kind) +
                      "'; known are machine, snapshot, held, set, unset, may_write, set_load, find_program, run_program, "
                      "competition, run, run_in_turns, start_worker, tell_worker, end_worker, recorder_facts, "
                      "start_recorder, describe_engine, run_folder, left_files, file, put_weights, look, digests, keep, "
                      "board_number");
    }

    /* What a machine says of itself that lies in no file; and what only a program tells. */
    Value machine() {
        utsname told = {};
        ::uname(&told);
        int n_processors = counted_processors("/sys/devices/system/cpu/online");
        cpu_set_t own;
        ::sched_getaffinity(0, sizeof own, &own);
        Value::List properties;
        for (const char *place : {"/system/bin/getprop"}) {
            for (const char *name : {"ro.serialno", "ro.boot.serialno"}) {
                if (::access(place, X_OK) == 0) {
                    properties.push_back(printable(printed(link_, {place, name}, PROPERTY_LIMIT_S)));
                }
            }
        }
        Value::List variables; /* their names alone */
        for (const char *name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
            if (std::getenv(name)) {
                variables.push_back(name);
            }
        }
        Value found;
        found.set("hostname", printable(told.nodename));
        found.set("architecture", printable(told.machine));
        found.set("n_processors",
                  n_processors > 0 ? n_processors : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
        found.set("usable_processors", numbers_in(own));
        found.set("properties", std::move(properties));
        found.set("variables", std::move(variables));
        return found;
    }

    Value held() const {
        Value found;
        Value::List notes(notes_.begin(), notes_.end()), problems;
        if (lock_.is_lost()) {
            problems.push_back(LOST_LOCK);
        }
        found.set("notes", std::move(notes));
        found.set("problems", std::move(problems));
        return found;
    }

    /* Two raw looks at who uses the processors; `desk_pid` is the desk's process, where that is one of this machine. */
    Value competition(double look_s, const Value *desk_pid) {
        pid_t desk = desk_pid ? desk_pid->whole32() : -1;
        Value::List looks = {processes_now(desk)};
        link_.wait(look_s);
        looks.push_back(processes_now(desk));
        return looks;
    }

    static Value processes_now(pid_t desk) {
        timespec used;
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        std::vector<pid_t> own = {::getpid(), desk};
        Value::List processes;
        for (const ProcessStat &each : all_processes()) {
            if (each.parent > 0 && std::count(own.begin(), own.end(), each.parent)) {
                own.push_back(each.pid); /* a child has a later number than its parent, as a rule */
            }
            bool is_own = std::count(own.begin(), own.end(), each.pid) > 0;
            processes.push_back(
                Value::List{static_cast<int>(each.pid), each.start_ticks, printable(each.name), each.used_ticks, is_own});
        }
        Value look;
        look.set("at_ns", monotonic_ns());
        look.set("own_ns", static_cast<long long>(used.tv_sec) * 1000000000 + used.tv_nsec);
        look.set("stat", Bytes{read_file("/proc/stat").value_or("")});
        look.set("processes", std::move(processes));
        return look;
    }

    Value weights(const std::string &digest) {
        if (digest.size() != 64 || digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
            throw Failure("'" + printable(digest) + "' is no SHA-256", "GgufError");
        }
        Value found;
        std::string path = places_.cache_dir + "/models/" + digest + ".gguf";
        found.set("path", path);
        found.set("is_there", file_digest(path, [&] { link_.look(); }) == digest);
        return found;
    }

    static Value looked_at(const std::string &path) {
        struct stat about;
        bool is_there = ::stat(path.c_str(), &about) == 0;
        std::optional<std::string> content =
            is_there && S_ISREG(about.st_mode) && about.st_size <= (1 << 20) ? read_file(path) : std::nullopt;
        Value found;
        found.set("path", real_path(path));
        found.set("is_folder", is_there && S_ISDIR(about.st_mode));
        found.set("content", content ? Value(Bytes{std::move(*content)}) : Value());
        return found;
    }

    /* The number that was made here once, as the text of a link that leads nowhere: it comes to be whole. */
    Value board_number() const {
        std::string link = places_.home + "/board-number", number;
        struct stat about;
        if (::lstat(link.c_str(), &about) != 0) {
            std::random_device device;
            char digits[40];
            std::snprintf(digits, sizeof digits, "%08x%08x%08x%08x", device(), device(), device(), device());
            made_folder(places_.home);
            int ignored = ::symlink(digits, link.c_str());
            static_cast<void>(ignored);
        }
        char found[PATH_MAX];
        ssize_t n_bytes = ::readlink(link.c_str(), found, sizeof found);
        return n_bytes > 0 ? Value(printable(std::string_view(found, static_cast<size_t>(n_bytes)))) : Value();
    }

    Link &link_;
    std::string root_;
    const Places places_;
    Start start_;
    ToldWorkers told_workers_{link_, start_};
    HeldLock lock_;
    LeftFiles left_files_{start_.work_folder};
    BusyLoops load_;
    std::unique_ptr<Journal> journal_;
    std::vector<std::string> notes_;
    bool is_held_ = false;
};

} // namespace

int serve(const std::vector<std::string> &arguments) {
    int incoming = ::fcntl(0, F_DUPFD_CLOEXEC, 3), outgoing = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
    int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, 0);
    ::dup2(2, 1); /* what anybody prints must not come between the messages */
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    Link link(incoming, outgoing);
    Value held;
    {
        Service service(link, arguments);
        try {
            link.begin();
            for (bool is_served = service.is_greeted(link.next_request()); is_served;) {
                service.serve_one();
            }
        } catch (const Ended &) {
        } catch (const std::exception &error) {
            link.blame(error.what());
        }
        held = service.let_go();
        link.say_ended(std::move(held));
    }
    std::string reason = printable(link.reason());
    pollfd told = {2, POLLOUT, 0};
    if (!reason.empty() && ::poll(&told, 1, static_cast<int>(LAST_WORD_S * 1000)) == 1) {
        ::dprintf(2, "perfsuite: %s\n", reason.c_str());
    }
    return reason.empty() ? 0 : 1;
}

} // namespace perfsuite
