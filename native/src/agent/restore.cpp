#include "restore.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "json.h"
#include "processes.h"

namespace perfsuite {

namespace {

constexpr size_t MOST_BYTES = 65536;

bool ends_with(const std::string &text, const std::string &end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/* All that is ever changed, so that a damaged or foreign file leads nowhere else. */
bool is_allowed(const std::string &path) {
    return path.compare(0, 4, "sys/") == 0 && path.find("/../") == std::string::npos &&
           (ends_with(path, "/scaling_governor") || ends_with(path, "/governor")) &&
           path.find('\0') == std::string::npos;
}

bool is_governor(const std::string &name) {
    auto is_plain = [](char each) {
        return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') || (each >= '0' && each <= '9') ||
               std::string_view("_.+-").find(each) != std::string_view::npos;
    };
    return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_plain);
}

/* Why a value could not be written to a file that is there, in the kernel's words; "" where it could. */
std::string write_line(const std::string &path, const std::string &text) {
    int handle = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0) {
        return system_text();
    }
    std::string refusal = ::write(handle, text.data(), text.size()) < 0 ? system_text() : "";
    ::close(handle);
    return refusal;
}

void sync_folder(const std::string &folder) {
    int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle >= 0) {
        ::fsync(handle);
        ::close(handle);
    }
}

std::string quoted(const std::string &text) { return "'" + text + "'"; }

std::string quoted(const std::optional<std::string> &text) { return text ? quoted(printable(*text)) : "None"; }

bool has(const std::vector<std::string> &values, const std::string &value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

void add(std::vector<Change> &changes, const Change &other) {
    for (Change &each : changes) {
        if (each.path == other.path) {
            for (const std::string &value : other.set_to) {
                if (!has(each.set_to, value)) {
                    each.set_to.push_back(value);
                }
            }
            return;
        }
    }
    changes.push_back(other);
}

Change change_in(const Value &value) {
    Change change;
    change.path = value.at("path").text();
    change.before = value.at("before").text();
    for (const Value &each : value.at("set_to").list()) {
        change.set_to.push_back(each.text());
    }
    bool are_names = is_governor(change.before) && std::all_of(change.set_to.begin(), change.set_to.end(), is_governor);
    if (!is_allowed(change.path) || !are_names || change.set_to.empty()) {
        throw Failure(printable(change.path) + ": is nothing that a run changes");
    }
    return change;
}

std::optional<long long> own_start() {
    std::optional<ProcessStat> stat = process_stat(::getpid());
    return stat ? std::optional<long long>(stat->start_ticks) : std::nullopt;
}

} // namespace

std::optional<std::string> read_line(const std::string &path) {
    int handle = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* neither a pipe nor a device holds it up */
    if (handle < 0) {
        return std::nullopt;
    }
    std::string content(MOST_BYTES, '\0');
    size_t n_bytes = 0;
    ssize_t n_read = 0;
    while (n_bytes < content.size() && (n_read = ::read(handle, &content[n_bytes], content.size() - n_bytes)) > 0) {
        n_bytes += static_cast<size_t>(n_read);
    }
    ::close(handle);
    if (n_read < 0) {
        return std::nullopt;
    }
    content.resize(n_bytes);
    constexpr std::string_view BLANKS("\0 \t\r\n", 5);
    size_t first = content.find_first_not_of(BLANKS), last = content.find_last_not_of(BLANKS);
    return first == std::string::npos ? std::nullopt
                                      : std::optional<std::string>(content.substr(first, last - first + 1));
}

bool made_folder(const std::string &path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    struct stat about;
    return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

std::optional<Journal::Kept> Journal::read() const {
    std::optional<std::string> content = read_file(path());
    std::optional<Value> plain = content ? parse_json(*content) : std::nullopt;
    if (!plain || !plain->is_map()) {
        return std::nullopt;
    }
    try {
        Kept kept;
        kept.boot_id = plain->at("boot_id").text();
        kept.process_id = plain->at("process_id").whole();
        if (const Value *start = plain->find("process_start")) {
            kept.process_start = start->whole();
        }
        for (const Value &each : plain->at("changes").list()) {
            kept.changes.push_back(change_in(each));
        }
        return kept;
    } catch (const Failure &) {
        return std::nullopt;
    }
}

void Journal::write(const Kept &kept) const {
    Value::List changes;
    for (const Change &each : kept.changes) {
        Value plain;
        plain.set("path", each.path);
        plain.set("before", each.before);
        plain.set("set_to", Value::List(each.set_to.begin(), each.set_to.end()));
        changes.push_back(std::move(plain));
    }
    Value plain;
    plain.set("boot_id", kept.boot_id);
    plain.set("process_id", kept.process_id);
    plain.set("process_start", kept.process_start ? Value(*kept.process_start) : Value());
    plain.set("changes", std::move(changes));
    std::string content = json_text(plain), partial = folder_ + "/.restore.json." + std::to_string(::getpid());
    made_folder(folder_);
    int handle = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool is_written = handle >= 0 && ::write(handle, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                      ::fsync(handle) == 0 && ::rename(partial.c_str(), path().c_str()) == 0;
    int error = errno;
    if (handle >= 0) {
        ::close(handle);
    }
    if (!is_written) {
        ::unlink(partial.c_str());
        throw Failure(path() + ": cannot be written (" + system_text(error) + ")", "DeviceError");
    }
    sync_folder(folder_);
}

void Journal::remove() const {
    ::unlink(path().c_str());
    sync_folder(folder_);
}

std::vector<std::string> Journal::restored(const std::vector<Change> &changes, bool says_all) const {
    std::vector<std::string> lines;
    for (const Change &each : changes) {
        std::string file = root_ + "/" + each.path, before = quoted(each.before);
        std::optional<std::string> found = read_line(file);
        if (found == each.before) {
            continue;
        }
        if (!found) {
            lines.push_back(file + ": cannot be read now; it was " + before + ", which a later run restores");
        } else if (!has(each.set_to, *found)) {
            lines.push_back(file + ": somebody else has set " + quoted(found) + " meanwhile; left so (it was " + before +
                            ")");
        } else {
            std::string refusal = write_line(file, each.before);
            std::optional<std::string> read = refusal.empty() ? read_line(file) : std::nullopt;
            if (refusal.empty() && read != each.before) {
                refusal = "reads " + quoted(read) + " afterwards";
            }
            if (!refusal.empty()) {
                lines.push_back(file + ": is still " + quoted(found) + "; " + before + " cannot be restored (" +
                                refusal + ")");
            } else if (says_all) {
                lines.push_back(file + ": restored to " + before);
            }
        }
    }
    if (std::optional<Kept> kept = read()) {
        keep_open(std::move(*kept));
    }
    return lines;
}

/* Leaves in the file what is still to be restored; where it cannot be written anew, it says too much, and stays. */
void Journal::keep_open(Kept kept) const {
    size_t n_before = kept.changes.size();
    auto is_done = [&](const Change &each) {
        std::optional<std::string> found = read_line(root_ + "/" + each.path);
        return found && (*found == each.before || !has(each.set_to, *found));
    };
    kept.changes.erase(std::remove_if(kept.changes.begin(), kept.changes.end(), is_done), kept.changes.end());
    if (kept.changes.empty()) {
        remove();
    } else if (kept.changes.size() != n_before) {
        try {
            write(kept);
        } catch (const Failure &) {
        }
    }
}

std::vector<std::string> Journal::restore_leftovers(bool is_nested) {
    struct stat about;
    if (::stat(path().c_str(), &about) != 0) {
        return {};
    }
    std::optional<Kept> kept = read();
    if (!kept) {
        std::string told = path() + ": is damaged", aside = path() + ".damaged";
        if (::rename(path().c_str(), aside.c_str()) != 0) {
            return {told + ", and cannot be moved (" + system_text() + "); nothing was restored, check the governors"};
        }
        return {told + "; kept as restore.json.damaged, and nothing was restored: check the governors"};
    }
    if (kept->boot_id.empty() || kept->boot_id != boot_id()) {
        remove();
        return {path() + ": from before the last start of the device, which has reset what a run had set; removed"};
    }
    std::optional<ProcessStat> stat = process_stat(static_cast<pid_t>(kept->process_id));
    if (stat && !stat->is_ended && kept->process_start == stat->start_ticks) {
        if (is_nested) {
            return {};
        }
        throw Failure(path() + ": process " + std::to_string(kept->process_id) +
                          " still holds what it has set; wait for it, or end it",
                      "DeviceError");
    }
    std::vector<std::string> lines = restored(kept->changes, true);
    for (std::string &each : lines) {
        each = "left by a run that was killed: " + each;
    }
    return lines;
}

Value Journal::changed(const Value::List &wishes) {
    std::vector<Change> changes;
    for (const Value &each : wishes) {
        changes.push_back(change_in(each));
    }
    std::optional<Kept> kept = read();
    Kept ours;
    ours.boot_id = boot_id();
    ours.process_id = ::getpid();
    ours.process_start = own_start();
    if (kept && kept->boot_id == ours.boot_id) {
        std::optional<ProcessStat> stat = process_stat(static_cast<pid_t>(kept->process_id));
        bool is_another = kept->process_id != ours.process_id || kept->process_start != ours.process_start;
        if (is_another && stat && !stat->is_ended && kept->process_start == stat->start_ticks) {
            throw Failure(path() + ": process " + std::to_string(kept->process_id) +
                              " still holds what it has set, and restores that itself",
                          "DeviceError");
        }
        ours.changes = kept->changes;
    }
    for (const Change &each : changes) {
        add(ours.changes, each);
    }
    write(ours);
    changes_ = ours.changes;
    Value::List outcomes;
    for (const Change &each : changes) {
        std::string file = root_ + "/" + each.path, wanted = each.set_to.at(0), refusal = write_line(file, wanted);
        std::optional<std::string> read = refusal.empty() ? read_line(file) : std::nullopt;
        if (refusal.empty() && read != wanted) {
            write_line(file, each.before); /* one that is not taken is put back at once */
        }
        Value outcome;
        outcome.set("refusal", refusal.empty() ? Value() : Value(refusal));
        outcome.set("read", read ? Value(printable(*read)) : Value());
        outcomes.push_back(std::move(outcome));
    }
    return outcomes;
}

std::vector<std::string> Journal::given_back(const Value::List &wishes) {
    std::vector<Change> changes;
    for (const Value &each : wishes) {
        changes.push_back(change_in(each));
        for (const Change &known : changes_) {
            if (known.path == changes.back().path) {
                add(changes, known); /* whatever was set there since is this run's, too */
            }
        }
    }
    return restored(changes, false);
}

Value Journal::may_write(const Value::List &paths) const {
    Value::List found;
    for (const Value &each : paths) {
        int handle = is_allowed(each.text()) ? ::open((root_ + "/" + each.text()).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
        found.push_back(handle >= 0);
        if (handle >= 0) {
            ::close(handle);
        }
    }
    return found;
}

std::vector<std::string> Journal::give_back() {
    std::vector<std::string> lines = changes_.empty() ? std::vector<std::string>() : restored(changes_, false);
    changes_.clear();
    return lines;
}

} // namespace perfsuite
