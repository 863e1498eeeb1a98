#include "run_folder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>

#include <sched.h>
#include <unistd.h>

#include "../worker/failure.h"
#include "../worker/sha256.h"
#include "../worker/text.h"
#include "desk.h"
#include "json.h"
#include "processes.h"
#include "restore.h"

namespace perfsuite {

namespace {

constexpr int SCHEMA = 1;

/* What stands in requests for the folder's own place, which is known here alone. */
constexpr std::string_view PLACE = "/perfsuite-folder";

/* How long is waited for a short answer, and beyond a plan's own limit. */
constexpr double ANSWER_LIMIT_S = 600.0, BEYOND_PLAN_S = 120.0, END_LIMIT_S = 120.0;

/* What says on the device how its threads are bound, which then stays. */
constexpr const char *PINNING[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};

std::string sha256(std::string_view content) {
    Sha256 digest;
    digest.add(content);
    return digest.hex();
}

/* What tells this device from others, as far as a program can know. */
std::string device_name() {
    std::string told;
    for (const char *path : {"/etc/machine-id", "/var/lib/dbus/machine-id", "/proc/device-tree/serial-number",
                             "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease"}) {
        told += read_line(path).value_or("") + "\n";
    }
    return sha256(told).substr(0, 16);
}

std::string replaced(std::string text, const std::string &folder) {
    for (size_t at = 0; (at = text.find(PLACE, at)) != std::string::npos; at += folder.size()) {
        text.replace(at, PLACE.size(), folder);
    }
    return text;
}

/* The value with the folder's place in its texts, those of packed plans included. */
Value placed(const Value &value, const std::string &folder, bool is_plan = false) {
    if (value.is_text()) {
        return replaced(value.text(), folder);
    }
    if (value.is_list()) {
        Value::List list;
        for (const Value &each : value.list()) {
            list.push_back(placed(each, folder, is_plan));
        }
        return list;
    }
    if (value.is_map()) {
        Value::Map map;
        for (const auto &[name, each] : value.map()) {
            map.emplace_back(name, placed(each, folder, name == "plan" || name == "plans"));
        }
        return map;
    }
    return is_plan ? Value(Bytes{pack(placed(unpack(value.bytes()), folder))}) : value;
}

/* The processors that workers may use: those that the desk has named, or all that this process may. */
std::vector<int> usable_processors(const Value &hello) {
    std::vector<int> usable;
    for (const Value &each : hello.at("arguments").at("conditions").at("processors").list()) {
        usable.push_back(each.whole32());
    }
    cpu_set_t own;
    ::sched_getaffinity(0, sizeof own, &own);
    for (int each = 0; usable.empty() && each < CPU_SETSIZE; each++) {
        if (CPU_ISSET(each, &own)) {
            usable.push_back(each);
        }
    }
    return usable;
}

/* Gives each thread of the engine a processor of its own, where there are as many: `pinning` of
 * perfsuite/measure/launch.py, for a desk that does not know the processors. */
Value pinned(const Value &plan, Value environment, const std::vector<int> &usable) {
    Value told = unpack(plan.bytes());
    const Value &arguments = told.at("arguments"), *llama = arguments.find("llama");
    const Value *binds = (llama ? *llama : arguments).find("binds_threads");
    bool is_bound = binds && binds->boolean() &&
                    (llama ? *llama : arguments).at("n_threads").whole() == static_cast<int64_t>(usable.size());
    for (const char *name : PINNING) {
        is_bound = is_bound && !std::getenv(name);
    }
    if (is_bound) {
        std::string places;
        for (int each : usable) {
            places += (places.empty() ? "{" : ",{") + std::to_string(each) + "}";
        }
        environment.set("OMP_PROC_BIND", "true");
        environment.set("OMP_PLACES", places);
    }
    return environment;
}

Value with_pinning(const std::string &kind, Value arguments, const std::vector<int> &usable) {
    if (kind == "run") {
        arguments.set("environment", pinned(arguments.at("plan"), arguments.at("environment"), usable));
    } else if (kind == "run_in_turns") {
        Value::List found;
        for (size_t each = 0; each < arguments.at("plans").list().size(); each++) {
            found.push_back(
                pinned(arguments.at("plans").list()[each], arguments.at("environments").list().at(each), usable));
        }
        arguments.set("environments", std::move(found));
    }
    return arguments;
}

Value failure_message(const std::string &text) {
    Value error, message;
    error.set("class", "MeasurementError");
    error.set("text", text);
    message.set("kind", "error");
    message.set("error", std::move(error));
    return message;
}

std::vector<std::string> names_in(const std::string &folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto &each : std::filesystem::directory_iterator(folder, error)) {
        names.push_back(each.path().filename().string());
    }
    if (error || names.empty()) {
        throw Failure(folder + ": holds no requests; upload all of the folder that 'perfsuite bundle --plan' wrote");
    }
    std::sort(names.begin(), names.end());
    return names;
}

/* The requests of a folder, and their answers. */
class Folder {
  public:
    Folder(const std::string &folder, const std::string &results, const std::vector<std::string> &options)
        : folder_(folder), results_(results) {
        command_ = {real_path("/proc/self/exe"), "serve"};
        command_.insert(command_.end(), options.begin(), options.end());
        if (!made_folder(results_) || ::access(results_.c_str(), W_OK) != 0) {
            throw Failure(results_ + ": cannot be written (" + system_text() +
                          "); name a folder for the answers: run.sh FOLDER");
        }
    }

    int run() {
        std::vector<std::string> names = names_in(folder_ + "/requests");
        hello_ = request(names[0]);
        usable_ = usable_processors(hello_);
        int n_failed = 0;
        for (size_t at = 0; at < names.size(); at++) {
            if (at > 0 && is_answered(names[at])) {
                continue;
            }
            std::printf("perfsuite: %zu of %zu\n", at + 1, names.size());
            std::fflush(stdout);
            double began_s = monotonic_s();
            if (at == 0 ? !is_open() : !take(names[at])) {
                n_failed++;
            } else {
                std::printf("perfsuite: took %.3f s for %s\n", monotonic_s() - began_s, names[at].c_str());
            }
            if (!desk_) {
                if (at == 0) { /* somebody else has the device, or it is another one than was meant */
                    return 1;
                }
                is_open();
            }
        }
        close();
        std::printf("perfsuite: all is answered, %d by a failure; fetch %s\n", n_failed, results_.c_str());
        return 0; /* what failed is judged at the desk */
    }

  private:
    Value request(const std::string &name) const {
        return placed(unpack(required_file(folder_ + "/requests/" + name)), folder_);
    }

    /* Whether a process serves: it has said welcome. */
    bool is_open() {
        if (!desk_) {
            desk_ = std::make_unique<Desk>(command_);
            std::optional<Value> welcome = desk_->ask(hello_, ANSWER_LIMIT_S + hello_wait_s());
            keep(names_in(folder_ + "/requests")[0], welcome.value_or(failure_message("the program has ended at once")));
            if (!welcome || welcome->at("kind").text() != "answer") {
                std::printf("perfsuite: %s\n", why(welcome).c_str());
                desk_.reset();
            }
        }
        return desk_ != nullptr;
    }

    double hello_wait_s() const { return hello_.at("arguments").at("claim").at("wait_s").number(); }

    static std::string why(const std::optional<Value> &message) {
        if (!message) {
            return "the program has ended";
        }
        const Value *error = message->find("error");
        return error ? printable(error->at("text").text()) : "the program is of another suite";
    }

    /* Asks for one thing, and keeps what came; whether that is an answer. */
    bool take(const std::string &name) {
        Value asked = request(name);
        const std::string kind = asked.at("kind").text();
        Value arguments = with_pinning(kind, asked.at("arguments"), usable_);
        const Value *limit_s = arguments.find("limit_s");
        asked.set("arguments", arguments);
        std::optional<Value> answer;
        if (desk_) {
            answer = desk_->ask(asked, limit_s ? limit_s->number() + BEYOND_PLAN_S : ANSWER_LIMIT_S);
        }
        keep(name, answer.value_or(failure_message("the program on the device ended, or had no answer in time")));
        if (!answer) {
            desk_.reset();
        }
        bool is_answer = answer && answer->at("kind").text() == "answer";
        if (!is_answer) {
            std::printf("perfsuite: %s\n", why(answer).c_str());
        }
        return is_answer;
    }

    /* Lets the device go; what that came to is the last answer. */
    void close() {
        if (desk_) {
            std::optional<Value> ended = desk_->end(END_LIMIT_S);
            keep("ended", ended.value_or(failure_message("the program on the device did not end in time")));
            desk_.reset();
        }
    }

    void keep(const std::string &name, Value message) const {
        message.set("id", 0);
        std::string packed = pack(message), asked = folder_ + "/requests/" + name;
        Value kept;
        kept.set("schema", SCHEMA);
        kept.set("request", name == "ended" ? "" : sha256(required_file(asked)));
        kept.set("device", device_);
        kept.set("sha256", sha256(packed));
        kept.set("message", Bytes{std::move(packed)});
        write_whole(results_ + "/" + name, pack(kept));
    }

    /* Whether this very request was answered, on this device. */
    bool is_answered(const std::string &name) const {
        std::optional<std::string> content = read_file(results_ + "/" + name);
        if (!content) {
            return false;
        }
        try {
            Value kept = unpack(*content);
            return kept.at("request").text() == sha256(required_file(folder_ + "/requests/" + name)) &&
                   kept.at("device").text() == device_ && kept.at("sha256").text() == sha256(kept.at("message").bytes());
        } catch (const Failure &) { /* it was cut, or is none of ours */
            return false;
        }
    }

    std::string folder_, results_;
    std::vector<std::string> command_;
    const std::string device_ = device_name();
    Value hello_;
    std::vector<int> usable_;
    std::unique_ptr<Desk> desk_;
};

} // namespace

int run_folder(const std::vector<std::string> &arguments) {
    std::vector<std::string> folders, options;
    for (const std::string &each : arguments) {
        (each.compare(0, 2, "--") == 0 ? options : folders).push_back(each);
    }
    if (folders.empty() || folders.size() > 2) {
        throw Failure("run-folder takes the folder that was uploaded, and another for the answers");
    }
    ::signal(SIGPIPE, SIG_IGN);
    std::string folder = real_path(folders[0]);
    return Folder(folder, folders.size() > 1 ? folders[1] : folder + "/results", options).run();
}

} // namespace perfsuite
