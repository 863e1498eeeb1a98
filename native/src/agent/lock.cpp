#include "lock.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "json.h"
#include "places.h"
#include "processes.h"

namespace perfsuite {

namespace {

/* Longest text, and path, of a field that is believed: whoever may write a lock may write anything into it. */
constexpr size_t MOST_CHARACTERS = 300, MOST_PATH_BYTES = 1000, MOST_BYTES = 32768;
/* How often a lock that says nothing is read, and one that is free is tried again: somebody may be at it just now. */
constexpr int N_READS = 20, N_TRIES = 20;
constexpr double READ_S = 0.005, TRY_S = 0.05;
/* Time between two looks at a lock that is waited for, and at a process that is asked to end; and how long it is. */
constexpr double LOOK_S = 1.0, END_LOOK_S = 0.1, END_LIMIT_S = 30.0;

constexpr const char *TEXTS[] = {"user", "host", "run_id", "purpose", "began_at", "account"};

double random_ratio() {
    static std::mt19937 engine{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
}

std::vector<std::string> lock_paths(const std::string &folder) {
    std::vector<std::string> folders;
    const char *named = std::getenv("PERFSUITE_LOCK_DIR"), *temporary = std::getenv("TMPDIR");
    if (!folder.empty() || named) {
        folders = {folder.empty() ? named : folder};
    } else {
        bool is_writable = false;
        for (const char *each : {"/run/lock", "/tmp"}) {
            if (std::error_code ignored; std::filesystem::is_directory(each, ignored)) {
                folders.push_back(each);
                is_writable = is_writable || ::access(each, W_OK) == 0;
            }
        }
        if (!is_writable) {
            folders.push_back(temporary && *temporary ? temporary : "/data/local/tmp");
        }
    }
    for (std::string &each : folders) {
        each += "/perfsuite.lock";
    }
    return folders;
}

/* Opens the lock's file; whoever may write makes it where there is none: -1 where it cannot be, with `errno`.
 *
 * It is made only where it is not there: in folders like /tmp the kernel refuses both at once for another's file
 * (proc_sys_fs(5), protected_regular). */
int opened(const std::string &path, int access) {
    int flags = access | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, handle = ::open(path.c_str(), flags);
    if (handle < 0 && errno == ENOENT && access == O_RDWR) {
        handle = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0666);
        if (handle >= 0) {
            ::fchmod(handle, 0666);
        } else if (errno == EEXIST) {
            handle = ::open(path.c_str(), flags);
        }
    }
    struct stat about = {};
    bool is_other = handle < 0 ? errno == ELOOP || errno == EISDIR || errno == ENXIO
                               : ::fstat(handle, &about) != 0 || !S_ISREG(about.st_mode) || about.st_nlink > 1;
    if (is_other) {
        if (handle >= 0) {
            ::close(handle);
        }
        throw Failure(path + ": is not a lock of perfsuite's, expected a plain file; remove it", "DeviceError");
    }
    return handle;
}

bool is_same(const struct stat &one, const struct stat &other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool is_named(int handle, const std::string &path) {
    struct stat named, about;
    return ::lstat(path.c_str(), &named) == 0 && ::fstat(handle, &about) == 0 && is_same(named, about);
}

/* The owner that a file names; nil where it names none. */
Value named_in(int handle) {
    std::string content(MOST_BYTES, '\0');
    ssize_t n_bytes = ::pread(handle, content.data(), content.size(), 0);
    content.resize(static_cast<size_t>(std::max<ssize_t>(n_bytes, 0)));
    std::optional<Value> plain = parse_json(content);
    try {
        Value owner;
        for (const char *each : TEXTS) {
            owner.set(each, printable(plain.value_or(Value()).at(each).text()).substr(0, MOST_CHARACTERS));
        }
        int32_t pid = plain->at("pid").whole32();
        const Value *folder = plain->find("state_folder");
        std::string path = folder ? folder->text() : "";
        bool is_path = path.compare(0, 1, "/") == 0 && path.size() <= MOST_PATH_BYTES && printable(path) == path;
        owner.set("pid", pid);
        owner.set("state_folder", is_path ? path : "");
        return pid > 0 ? owner : Value();
    } catch (const Failure &) {
        return nullptr;
    }
}

/* Who has locked a file that does not say who: no process has this number. */
Value unknown_owner(const std::string &path) {
    Value owner;
    for (const char *each : TEXTS) {
        owner.set(each, "");
    }
    owner.set("purpose", path);
    owner.set("pid", INT32_MAX);
    owner.set("state_folder", "");
    return owner;
}

bool has_open(int64_t pid, const std::string &path) {
    struct stat named, about;
    std::error_code error;
    for (std::filesystem::directory_iterator each("/proc/" + std::to_string(pid) + "/fd", error), end;
         !error && each != end; each.increment(error)) {
        if (::stat(each->path().c_str(), &about) == 0 && ::lstat(path.c_str(), &named) == 0 && is_same(named, about)) {
            return true;
        }
    }
    return false;
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
    const Value *is_shared = value.find("is_shared");
    claim.is_shared = is_shared && is_shared->boolean();
    const Value *folder = value.find("lock_folder");
    claim.lock_folder = folder ? folder->text() : "";
    return claim;
}

std::string owner_text(const Value &owner) {
    auto text = [&](const char *name) { return owner.at(name).text(); };
    if (text("run_id").empty()) {
        return "a run of which " + text("purpose") + " does not say whose it is";
    }
    std::string account = text("account") == text("user") ? "" : ", account " + text("account") + " there";
    return text("user") + " from " + text("host") + " (" + text("purpose") + ")" + account + " since " +
           text("began_at") + ", process " + std::to_string(owner.at("pid").whole());
}

void HeldLock::take(const Claim &claim, const std::string &state_folder,
                    const std::function<void(const std::string &)> &tell, const std::function<void(double)> &wait) {
    double until = monotonic_s() + claim.wait_s;
    bool is_told = false;
    for (int n_tries = 0; !is_taken(lock_paths(claim.lock_folder));) {
        Value other = lock_holder(claim.lock_folder);
        double left_s = until - monotonic_s();
        if (other.is_nil()) { /* somebody has given it back meanwhile, or has only looked at it */
            if (++n_tries > N_TRIES) {
                throw Failure(claim.name + ": the device's lock changes hands all the time; try again", "LockedError");
            }
            wait(TRY_S * random_ratio());
            continue;
        }
        if (claim.is_shared && other.at("run_id").text() == claim.run_id) {
            shared_ = std::move(other);
            lock_folder_ = claim.lock_folder;
            return;
        }
        std::string held = claim.name + ": held by " + owner_text(other), limit_s = std::to_string(std::llround(claim.wait_s));
        if (left_s <= 0) {
            throw Failure(held + "; 'perfsuite devices unlock " + claim.name +
                              " --force' ends it; pytest waits for it with --perf-wait=10m" +
                              (claim.wait_s > 0 ? "; waited " + limit_s + " s for it" : ""),
                          "LockedError");
        }
        if (!is_told) {
            tell(held + "; waiting for it, " + limit_s + " s at most");
            is_told = true;
        }
        wait(std::min(left_s, LOOK_S * (0.5 + random_ratio() / 2)));
    }
    name_owner(claim, state_folder);
}

/* Locks the file in all folders where this account can open or make it; false where somebody else has one of them. */
bool HeldLock::is_taken(const std::vector<std::string> &paths) {
    std::string refusals;
    for (const std::string &path : paths) {
        int handle = opened(path, O_RDWR);
        if (handle >= 0 && ::flock(handle, LOCK_EX | LOCK_NB) == 0) {
            files_.emplace_back(handle, path);
            if (is_named(handle, path)) {
                continue;
            }
            errno = EWOULDBLOCK;
        } else if (handle >= 0) {
            int error = errno;
            ::close(handle);
            errno = error;
        }
        if (errno == EWOULDBLOCK) {
            let_go();
            return false;
        }
        refusals += (refusals.empty() ? "" : ", ") + folder_of(path) + " (" + system_text() + ")";
    }
    if (files_.empty()) {
        throw Failure("the device's lock cannot be taken: " +
                          (refusals.empty() ? std::string("there is neither /run/lock nor /tmp") : refusals) +
                          "; make one of them writable",
                      "DeviceError");
    }
    return true;
}

/* Says who has the lock, and notes whom a run that was killed has left there; a full disk hides the name. */
void HeldLock::name_owner(const Claim &claim, const std::string &state_folder) {
    char began_at[40];
    std::time_t now = ::time(nullptr);
    std::tm utc;
    ::gmtime_r(&now, &utc);
    std::strftime(began_at, sizeof began_at, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
    Value owner;
    owner.set("user", claim.user);
    owner.set("host", claim.host);
    owner.set("run_id", claim.run_id);
    owner.set("purpose", claim.purpose);
    owner.set("began_at", static_cast<const char *>(began_at));
    owner.set("account", account_name(::geteuid()));
    owner.set("pid", static_cast<int>(::getpid()));
    owner.set("state_folder", state_folder);
    std::string content = json_text(owner);
    for (const auto &[handle, path] : files_) {
        if (Value left = named_in(handle); !left.is_nil()) {
            std::string folder = left.at("state_folder").text(), note = "the run before this one was killed: " + owner_text(left);
            bool is_own = is_own_folder(folder);
            if (is_own && folder != state_folder) {
                left_folders.push_back(folder);
            } else if (!is_own && !folder.empty()) {
                note += "; what it has set, if anything, " + folder + " names";
            }
            if (!std::count(notes.begin(), notes.end(), note)) {
                notes.push_back(note);
            }
        }
        bool is_written = ::ftruncate(handle, 0) == 0 && ::pwrite(handle, content.data(), content.size(), 0) >= 0;
        static_cast<void>(is_written);
    }
}

bool HeldLock::is_lost() const {
    if (is_shared() && !was_lost_) {
        return json_text(lock_holder(lock_folder_)) != json_text(shared_);
    }
    return was_lost_ || !std::all_of(files_.begin(), files_.end(),
                                     [](const auto &each) { return is_named(each.first, each.second); });
}

void HeldLock::give_back() {
    was_lost_ = is_lost();
    for (const auto &[handle, path] : files_) {
        bool is_emptied = ::ftruncate(handle, 0) == 0;
        static_cast<void>(is_emptied);
    }
    let_go();
}

void HeldLock::let_go() {
    for (const auto &[handle, path] : files_) {
        ::flock(handle, LOCK_UN); /* also for a child that was just forked */
        ::close(handle);
    }
    files_.clear();
}

Value lock_holder(const std::string &folder) {
    for (const std::string &path : lock_paths(folder)) {
        int handle = opened(path, O_RDONLY);
        bool is_held = handle >= 0;
        Value owner;
        for (int n_reads = 0; is_held && owner.is_nil() && n_reads < N_READS; n_reads++) {
            sleep_s(n_reads ? READ_S : 0.0);
            is_held = ::flock(handle, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
            owner = is_held ? named_in(handle) : Value();
        }
        if (handle >= 0) {
            ::close(handle);
        }
        if (is_held) {
            return owner.is_nil() ? unknown_owner(path) : owner;
        }
    }
    return nullptr;
}

void end_holder(const Value &owner, const std::string &folder, const std::function<void(double)> &wait) {
    std::string known = json_text(owner);
    auto has_it = [&] { return json_text(lock_holder(folder)) == known; };
    constexpr std::pair<int, double> STEPS[] = {{SIGTERM, END_LIMIT_S}, {SIGKILL, 1.0}};
    for (auto [number, limit_s] : STEPS) {
        if (!has_it()) {
            return;
        }
        std::vector<std::string> paths = lock_paths(folder);
        int64_t pid = owner.at("pid").whole();
        if (!std::any_of(paths.begin(), paths.end(), [&](const std::string &each) { return has_open(pid, each); })) {
            break;
        }
        ::kill(static_cast<pid_t>(pid), number);
        for (double until = monotonic_s() + limit_s; monotonic_s() < until; wait(END_LOOK_S)) {
            if (!has_it()) {
                return;
            }
        }
    }
    throw Failure("held by " + owner_text(owner) + ", which cannot be ended from here; end it as that account, or as root",
                  "LockedError");
}

} // namespace perfsuite
