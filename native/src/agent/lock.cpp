#include "lock.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "json.h"
#include "processes.h"

namespace perfsuite {

namespace {

constexpr const char *LOCK_NAME = "perfsuite-device.lock";

/* A holder that was silent for longer hangs; how often one says that it is there. */
constexpr double SILENCE_LIMIT_S = 60.0, BEAT_S = 5.0;
/* Longest wait for somebody who is removing the same lock; what was begun longer ago was left by a killed process. */
constexpr double REMOVAL_LIMIT_S = 5.0, DRAFT_LIMIT_S = 60.0;
/* Time between two looks at a lock that is waited for, and at a process that is asked to end. */
constexpr double LOOK_S = 1.0, HOLDER_LOOK_S = 0.1, PREDECESSOR_LIMIT_S = 30.0;
/* How often two who hinder each other are tried, and a lock that says nothing is read: it may just be removed. */
constexpr int N_TRIES = 20;
/* Longest text of a field that is believed: whoever may write a lock may write anything into it. */
constexpr size_t MOST_CHARACTERS = 300, MOST_PATH_BYTES = 1000, MOST_BYTES = 32768;

enum class Holder { RUNS, HANGS, GONE, EARLIER_BOOT, UNKNOWN };

struct Owner {
    std::string user, host, run_id, purpose, began_at, pid_namespace, boot_id, state_folder;
    long long began_ns = 0, pid = 0;
    std::optional<long long> start_ticks;
};

struct LockState {
    std::string folder;
    std::optional<Owner> owner;
    /* The very text that names the owner. */
    std::string content;
    uid_t uid = 0;
    Holder holder = Holder::UNKNOWN;
    std::optional<double> beat_age_s, held_s;

    bool is_own() const { return uid == ::geteuid(); }
    bool is_of(const std::string &run_id) const { return is_own() && owner && owner->run_id == run_id; }
    bool can_be_taken_over(const std::string &run_id) const {
        return holder == Holder::EARLIER_BOOT || (is_of(run_id) && holder == Holder::GONE);
    }
};

std::string lock_path(const std::string &folder) { return folder + "/" + LOCK_NAME; }

double random_ratio() {
    static std::mt19937 engine{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

std::string aside_path(const std::string &folder) {
    static std::random_device device;
    char name[64];
    std::snprintf(name, sizeof name, ".%s.%d-%08x%08x", LOCK_NAME, static_cast<int>(::getpid()), device(), device());
    return folder + "/" + name;
}

void remove_tree(const std::string &path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

/* A small file of a lock, of the account that owns the lock's folder; none for anything else. */
std::optional<std::string> content_of(int handle, const char *name, uid_t uid) {
    int opened = ::openat(handle, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) {
        return std::nullopt;
    }
    struct stat about;
    std::string content(MOST_BYTES, '\0');
    bool is_owners = ::fstat(opened, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == uid;
    ssize_t n_bytes = is_owners ? ::read(opened, content.data(), content.size()) : -1;
    ::close(opened);
    if (n_bytes < 0) {
        return std::nullopt;
    }
    content.resize(static_cast<size_t>(n_bytes));
    return content;
}

std::optional<Owner> owner_of(const std::string &content) {
    std::optional<Value> plain = parse_json(content);
    if (!plain || !plain->is_map()) {
        return std::nullopt;
    }
    try {
        Owner owner;
        auto text = [&](const char *name) { return printable(plain->at(name).text()).substr(0, MOST_CHARACTERS); };
        owner.user = text("user");
        owner.host = text("host");
        owner.run_id = text("run_id");
        owner.purpose = text("purpose");
        owner.began_at = text("began_at");
        owner.pid_namespace = text("pid_namespace");
        owner.boot_id = text("boot_id");
        if (const Value *folder = plain->find("state_folder"); folder && folder->is_text()) {
            bool is_path = folder->text().compare(0, 1, "/") == 0 && folder->text().size() <= MOST_PATH_BYTES &&
                           printable(folder->text()) == folder->text();
            owner.state_folder = is_path ? folder->text() : "";
        }
        owner.began_ns = plain->at("began_ns").whole();
        owner.pid = plain->at("pid").whole();
        if (const Value *ticks = plain->find("start_ticks")) {
            owner.start_ticks = ticks->whole();
        }
        /* The system takes 0, and less, for whole groups. */
        bool is_possible = owner.began_ns >= 0 && owner.pid >= 1 && owner.pid <= INT32_MAX;
        return is_possible && owner.start_ticks.value_or(0) >= 0 ? std::optional<Owner>(owner) : std::nullopt;
    } catch (const Failure &) {
        return std::nullopt;
    }
}

std::optional<double> seconds_since(long long moment_ns) {
    long long now_ns = monotonic_ns();
    return moment_ns > now_ns ? std::nullopt : std::optional<double>(static_cast<double>(now_ns - moment_ns) / 1e9);
}

std::optional<double> beat_age_s(int handle, uid_t uid) {
    for (int n_tries = 0; n_tries < 10; n_tries++) {
        std::optional<std::string> content = content_of(handle, "beat", uid);
        std::vector<std::string_view> words = content ? words_of(*content) : std::vector<std::string_view>();
        if (words.size() != 2) {
            return std::nullopt;
        }
        if (words[0] == words[1]) { /* else it is being written */
            std::optional<long long> moment = number_in(words[0]);
            return moment && *moment >= 0 ? seconds_since(*moment) : std::nullopt;
        }
    }
    return std::nullopt;
}

Holder judged(const std::optional<Owner> &owner, std::optional<double> age_s) {
    bool beats = age_s && *age_s <= SILENCE_LIMIT_S;
    if (!owner) {
        return beats ? Holder::RUNS : Holder::UNKNOWN;
    }
    if (!owner->boot_id.empty() && !boot_id().empty() && owner->boot_id != boot_id()) {
        return Holder::EARLIER_BOOT;
    }
    if (owner->pid_namespace != pid_namespace()) {
        return beats ? Holder::RUNS : Holder::UNKNOWN;
    }
    if (is_there(static_cast<pid_t>(owner->pid), owner->start_ticks) == std::optional<bool>(false)) {
        return Holder::GONE;
    }
    return beats ? Holder::RUNS : Holder::HANGS;
}

bool has_name(const std::string &folder, int handle) {
    struct stat named, opened;
    return ::lstat(lock_path(folder).c_str(), &named) == 0 && ::fstat(handle, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

LockState lock_behind(const std::string &folder, int handle) {
    LockState state;
    struct stat about = {};
    ::fstat(handle, &about);
    state.folder = folder;
    state.uid = about.st_uid;
    state.content = content_of(handle, "owner.json", state.uid).value_or("");
    state.owner = owner_of(state.content);
    state.beat_age_s = beat_age_s(handle, state.uid);
    state.holder = judged(state.owner, state.beat_age_s);
    state.held_s = state.owner ? seconds_since(state.owner->began_ns) : std::nullopt;
    return state;
}

/* The lock of a folder; none where there is none.  A `Failure` where what has its name is no lock. */
std::optional<LockState> read_lock(const std::string &folder) {
    std::optional<LockState> state;
    for (int n_tries = 0; n_tries < N_TRIES; n_tries++) {
        int handle = ::open(lock_path(folder).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (handle < 0) {
            if (errno == ENOENT) {
                return std::nullopt;
            }
            throw Failure(lock_path(folder) + ": is not a lock of perfsuite's (" + system_text() + "); remove it",
                          "DeviceError");
        }
        state = lock_behind(folder, handle);
        bool is_named = has_name(folder, handle);
        ::close(handle);
        if (state->owner || is_named) {
            break;
        }
    }
    return state;
}

std::optional<LockState> first_lock(const std::vector<std::string> &folders) {
    for (const std::string &each : folders) {
        if (std::optional<LockState> state = read_lock(each)) {
            return state;
        }
    }
    return std::nullopt;
}

std::vector<std::string> lock_folders(const std::string &folder) {
    const char *named = std::getenv("PERFSUITE_LOCK_DIR");
    if (!folder.empty() || named) {
        return {folder.empty() ? named : folder};
    }
    std::vector<std::string> folders;
    bool is_writable = false;
    for (const char *each : {"/run/lock", "/tmp"}) {
        struct stat about;
        if (::stat(each, &about) == 0 && S_ISDIR(about.st_mode)) {
            folders.push_back(each);
            is_writable = is_writable || ::access(each, W_OK) == 0;
        }
    }
    const char *temporary = std::getenv("TMPDIR");
    if (!is_writable) {
        folders.push_back(temporary && *temporary ? temporary : "/data/local/tmp");
    }
    return folders;
}

std::string duration(double seconds) {
    constexpr std::pair<double, const char *> UNITS[] = {{86400, "days"}, {3600, "h"}, {60, "min"}};
    char text[48];
    for (auto [size, unit] : UNITS) {
        if (seconds >= 2 * size) {
            std::snprintf(text, sizeof text, "%.0f %s", seconds / size, unit);
            return text;
        }
    }
    std::snprintf(text, sizeof text, "%.0f s", seconds);
    return text;
}

/* Who has the lock, from where, since when, doing what; and whether the holder still runs. */
std::string told(const LockState &state) {
    std::string account = printable(account_name(state.uid)), who = "the account " + account + " there";
    if (state.owner) {
        who = state.owner->user + " from " + state.owner->host + " (" + state.owner->purpose + ")" +
              (account == state.owner->user ? "" : ", account " + account + " there") + " since " +
              state.owner->began_at;
    }
    std::string process = state.owner ? "its process " + std::to_string(state.owner->pid) : "its process";
    std::string beat =
        state.beat_age_s ? "its last heartbeat was " + duration(*state.beat_age_s) + " ago" : std::string("no beat");
    std::string how;
    switch (state.holder) {
    case Holder::RUNS:
        how = beat;
        break;
    case Holder::HANGS:
        how = process + " is there and hangs: " + beat;
        break;
    case Holder::GONE:
        how = process + " is gone, crashed or killed: " + beat;
        break;
    case Holder::EARLIER_BOOT:
        how = "that was before the device started";
        break;
    case Holder::UNKNOWN:
        how = "whether that still runs cannot be told: " + beat;
        break;
    }
    return "held by " + who + (state.held_s ? " (" + duration(*state.held_s) + ")" : "") + "; " + how;
}

std::string refusal(const LockState &state, const std::string &name) {
    std::string unlock = "'perfsuite devices unlock " + name + "' breaks the lock";
    std::string todo = state.holder == Holder::RUNS ? "wait until it has ended; pytest does so with --perf-wait=10m"
                       : state.holder == Holder::HANGS ? "end that process, or " + unlock
                                                       : unlock;
    return name + ": " + told(state) + "; " + todo;
}

std::string beat_line() {
    char line[64];
    long long now_ns = monotonic_ns();
    std::snprintf(line, sizeof line, "%020lld %020lld\n", now_ns, now_ns);
    return line;
}

/* Has the kernel's lock of a lock's folder, which whoever removes it must have; a `Failure` where that takes long. */
void flocked(int handle) {
    for (double until = monotonic_s() + REMOVAL_LIMIT_S; ::flock(handle, LOCK_EX | LOCK_NB) != 0; sleep_s(0.02)) {
        if (monotonic_s() > until) {
            throw Failure("somebody else is removing the device's lock and does not end; try again", "LockedError");
        }
    }
}

/* Takes the name away at once, then the content. */
void remove_named(const std::string &folder) {
    std::string aside = aside_path(folder);
    if (::rename(lock_path(folder).c_str(), aside.c_str()) == 0) {
        remove_tree(aside);
    }
}

/* Removes the lock that was seen; false where it is not that one any more. */
bool remove_lock(const LockState &seen) {
    std::string path = lock_path(seen.folder);
    int handle = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (handle < 0 && errno == ENOENT) {
        return false;
    }
    if (handle < 0) {
        throw Failure(path + ": belongs to the account " + account_name(seen.uid) +
                          " of the device; remove it as that account, or as root",
                      "LockedError");
    }
    bool is_removed = false;
    try {
        flocked(handle);
        if (has_name(seen.folder, handle) && lock_behind(seen.folder, handle).content == seen.content) {
            remove_named(seen.folder);
            is_removed = !has_name(seen.folder, handle);
        }
    } catch (...) {
        ::close(handle);
        throw;
    }
    ::close(handle);
    return is_removed;
}

/* Removes what processes of this account were killed over. */
void sweep(const std::string &folder) {
    std::vector<std::string> left;
    std::string prefix = std::string(".") + LOCK_NAME + ".";
    DIR *opened = ::opendir(folder.c_str());
    while (opened) {
        dirent *entry = ::readdir(opened);
        if (!entry) {
            break;
        }
        struct stat about;
        std::string path = folder + "/" + entry->d_name;
        if (std::string(entry->d_name).compare(0, prefix.size(), prefix) == 0 && ::lstat(path.c_str(), &about) == 0 &&
            S_ISDIR(about.st_mode) && about.st_uid == ::geteuid() &&
            std::difftime(::time(nullptr), about.st_mtime) > DRAFT_LIMIT_S) {
            left.push_back(path);
        }
    }
    if (opened) {
        ::closedir(opened);
    }
    for (const std::string &each : left) {
        remove_tree(each);
    }
}

std::string owner_text(const Claim &claim, const std::string &state_folder) {
    char began_at[40];
    std::time_t now = ::time(nullptr);
    std::tm utc;
    ::gmtime_r(&now, &utc);
    std::strftime(began_at, sizeof began_at, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
    std::optional<ProcessStat> stat = process_stat(::getpid());
    Value plain;
    plain.set("user", claim.user);
    plain.set("host", claim.host);
    plain.set("run_id", claim.run_id);
    plain.set("purpose", claim.purpose);
    plain.set("began_at", static_cast<const char *>(began_at));
    plain.set("began_ns", monotonic_ns());
    plain.set("pid", static_cast<int>(::getpid()));
    plain.set("start_ticks", stat ? Value(stat->start_ticks) : Value());
    plain.set("pid_namespace", pid_namespace());
    plain.set("boot_id", boot_id());
    plain.set("state_folder", state_folder);
    return json_text(plain);
}

const char *named(Holder holder) {
    constexpr const char *NAMES[] = {"runs", "hangs", "gone", "earlier boot", "unknown"};
    return NAMES[static_cast<size_t>(holder)];
}

Value plain_of(const LockState &state) {
    Value owner, found;
    if (const std::optional<Owner> &known = state.owner) {
        owner.set("user", known->user);
        owner.set("host", known->host);
        owner.set("run_id", known->run_id);
        owner.set("purpose", known->purpose);
        owner.set("began_at", known->began_at);
        owner.set("began_ns", known->began_ns);
        owner.set("pid", known->pid);
        owner.set("start_ticks", known->start_ticks ? Value(*known->start_ticks) : Value());
        owner.set("pid_namespace", known->pid_namespace);
        owner.set("boot_id", known->boot_id);
        owner.set("state_folder", known->state_folder);
    }
    found.set("path", lock_path(state.folder));
    found.set("owner", std::move(owner));
    found.set("account", printable(account_name(state.uid)));
    found.set("holder", named(state.holder));
    found.set("beat_age_s", state.beat_age_s ? Value(*state.beat_age_s) : Value());
    found.set("held_s", state.held_s ? Value(*state.held_s) : Value());
    found.set("uid", static_cast<long long>(state.uid));
    return found;
}

bool is_written(int folder, const char *name, const std::string &content, int &handle) {
    handle = ::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (handle < 0 || ::fchmod(handle, 0644) != 0) {
        return false;
    }
    ssize_t n_bytes = ::write(handle, content.data(), content.size());
    if (n_bytes >= 0 && static_cast<size_t>(n_bytes) != content.size()) {
        errno = ENOSPC;
    }
    return n_bytes == static_cast<ssize_t>(content.size());
}

void close_if_open(int &handle) {
    if (handle >= 0) {
        ::close(handle);
    }
    handle = -1;
}

} // namespace

Claim Claim::from_value(const Value &value) {
    Claim claim;
    claim.name = printable(value.at("name").text());
    claim.user = value.at("user").text();
    claim.host = value.at("host").text();
    claim.run_id = value.at("run_id").text();
    claim.purpose = value.at("purpose").text();
    claim.wait_s = value.at("wait_s").number();
    const Value *folder = value.find("lock_folder");
    claim.lock_folder = folder ? folder->text() : "";
    return claim;
}

bool HeldLock::is_placed(const std::string &folder, const std::string &owner) {
    sweep(folder);
    std::string draft = aside_path(folder);
    int owner_handle = -1;
    if (::mkdir(draft.c_str(), 0700) == 0) {
        handle_ = ::open(draft.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (handle_ >= 0 && is_written(handle_, "beat", beat_line(), beat_handle_) &&
            is_written(handle_, "owner.json", owner, owner_handle) && ::fchmod(handle_, 0711) == 0 &&
            ::rename(draft.c_str(), lock_path(folder).c_str()) == 0) {
            ::close(owner_handle);
            folder_ = folder;
            beaten_s_ = monotonic_s();
            return true;
        }
    }
    int error = errno;
    remove_tree(draft);
    close_if_open(owner_handle);
    close_if_open(beat_handle_);
    close_if_open(handle_);
    struct stat about;
    if (error == EEXIST || error == ENOTEMPTY || error == ENOTDIR ||
        (error == ENOENT && ::stat(folder.c_str(), &about) == 0)) {
        return false; /* somebody was faster */
    }
    errno = error;
    throw Failure(folder + " (" + system_text(error) + ")");
}

void HeldLock::take(const Claim &claim, const std::string &state_folder,
                    const std::function<void(const std::string &)> &tell, const std::function<void(double)> &wait) {
    std::vector<std::string> folders = lock_folders(claim.lock_folder), usable = folders;
    double until = monotonic_s() + claim.wait_s;
    bool is_told = false;
    for (int n_tries = 0; n_tries < N_TRIES;) {
        std::optional<LockState> state = first_lock(usable);
        if (state && state->is_of(claim.run_id) && state->holder == Holder::RUNS) {
            is_shared_ = true;
            folder_ = state->folder;
            shared_owner_ = state->content;
            return;
        }
        if (state && state->can_be_taken_over(claim.run_id)) {
            n_tries++;
            try {
                if (remove_lock(*state)) {
                    notes.push_back("took over the device's lock, " + told(*state));
                }
            } catch (const Failure &) {
                usable.erase(std::remove(usable.begin(), usable.end(), state->folder), usable.end());
                if (usable.empty()) {
                    throw;
                }
            }
            continue;
        }
        if (state) {
            double left_s = until - monotonic_s();
            if ((state->holder != Holder::RUNS && state->holder != Holder::HANGS) || left_s <= 0) {
                std::string waited;
                if (claim.wait_s > 0 && left_s <= 0) {
                    waited = "; waited " + std::to_string(std::llround(claim.wait_s)) + " s for it";
                }
                throw Failure(refusal(*state, claim.name) + waited, "LockedError");
            }
            if (!is_told) {
                tell(claim.name + ": " + told(*state) + "; waiting for it, " +
                     std::to_string(std::llround(claim.wait_s)) + " s at most");
                is_told = true;
            }
            wait(std::min(left_s, LOOK_S * (0.5 + random_ratio() / 2)));
            continue;
        }
        n_tries++;
        std::string refusals;
        bool is_refused = true;
        for (const std::string &each : usable) {
            try {
                is_placed(each, owner_text(claim, state_folder));
                is_refused = false;
                break;
            } catch (const Failure &error) {
                refusals += (refusals.empty() ? "" : ", ") + std::string(error.what());
            }
        }
        if (is_refused) {
            throw Failure("the device's lock cannot be written: " +
                              (refusals.empty() ? std::string("there is neither /run/lock nor /tmp") : refusals) +
                              "; free space there, or make one of them writable",
                          "DeviceError");
        }
        /* A lock may lie in any of the folders, since not everybody may write to the first: look again, and give way. */
        bool is_alone = handle_ >= 0;
        for (const std::string &each : folders) {
            std::optional<LockState> other = is_alone && each != folder_ ? read_lock(each) : std::nullopt;
            is_alone = is_alone && (!other || other->can_be_taken_over(claim.run_id));
        }
        if (is_alone) {
            return;
        }
        let_go();
        wait(random_ratio() * 0.05);
    }
    throw Failure("the device's lock changes hands all the time; try again", "LockedError");
}

void HeldLock::beat() {
    double now_s = monotonic_s();
    if (now_s - beaten_s_ < BEAT_S || folder_.empty()) {
        return;
    }
    beaten_s_ = now_s;
    if (is_shared_) {
        try {
            std::optional<LockState> now = read_lock(folder_);
            bool is_had = now && now->content == shared_owner_ &&
                          (now->holder == Holder::RUNS || now->holder == Holder::HANGS);
            is_lost = is_lost || !is_had;
        } catch (const Failure &) {
            is_lost = true;
        }
        return;
    }
    std::string line = beat_line();
    ssize_t ignored = ::pwrite(beat_handle_, line.data(), line.size(), 0); /* a full disk is no reason to end */
    static_cast<void>(ignored);
    is_lost = is_lost || !has_name(folder_, handle_);
}

void HeldLock::let_go() {
    if (handle_ >= 0) {
        try {
            flocked(handle_);
            if (has_name(folder_, handle_)) {
                remove_named(folder_);
            }
        } catch (const Failure &) { /* whoever is removing it has it */
        }
    }
    close_if_open(beat_handle_);
    close_if_open(handle_);
    folder_.clear();
}

void HeldLock::give_back() {
    if (!is_shared_ && handle_ >= 0 && !has_name(folder_, handle_)) {
        is_lost = true;
    }
    let_go();
}

Value lock_state(const std::string &folder) {
    std::optional<LockState> state = first_lock(lock_folders(folder));
    return state ? plain_of(*state) : Value();
}

Value broken_lock(const std::string &folder, bool is_forced) {
    for (int n_tries = 0; n_tries < N_TRIES; n_tries++) {
        std::optional<LockState> state = first_lock(lock_folders(folder));
        if (!state) {
            return nullptr;
        }
        if (state->holder == Holder::RUNS && !is_forced) {
            throw Failure(told(*state) + "; wait until it has ended, or break the lock under it with --force",
                          "LockedError");
        }
        if (remove_lock(*state)) {
            return plain_of(*state);
        }
    }
    throw Failure("the device's lock changes hands all the time; try again", "LockedError");
}

void end_predecessor(const Claim &claim, const std::function<void(double)> &wait) {
    auto holder = [&]() -> std::optional<Owner> {
        std::optional<LockState> state = first_lock(lock_folders(claim.lock_folder));
        if (!state || !state->is_of(claim.run_id) ||
            (state->holder != Holder::RUNS && state->holder != Holder::HANGS)) {
            return std::nullopt;
        }
        const Owner &owner = *state->owner;
        std::optional<ProcessStat> stat = process_stat(static_cast<pid_t>(owner.pid));
        bool is_it = owner.pid_namespace == pid_namespace() && owner.pid != ::getpid() && stat && owner.start_ticks &&
                     *owner.start_ticks == stat->start_ticks;
        return is_it ? state->owner : std::nullopt;
    };
    std::optional<Owner> owner = holder();
    constexpr std::pair<int, double> STEPS[] = {{SIGTERM, PREDECESSOR_LIMIT_S}, {SIGKILL, 1.0}};
    for (auto [number, limit_s] : STEPS) {
        auto is_it = [&](const std::optional<Owner> &found) {
            return owner && found && found->pid == owner->pid && found->start_ticks == owner->start_ticks;
        };
        if (!is_it(holder())) {
            return;
        }
        ::kill(static_cast<pid_t>(owner->pid), number);
        for (double until = monotonic_s() + limit_s; monotonic_s() < until; wait(HOLDER_LOOK_S)) {
            if (!is_it(holder())) {
                return;
            }
        }
    }
}

} // namespace perfsuite
