#include "memory_group.h"

#include <cstdio>
#include <cstring>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "json.h"
#include "processes.h"

namespace perfsuite {

namespace {

constexpr const char *WHAT = "memory limit: ";

/* Longest to wait until the kernel has let go of a group's processes. */
constexpr double REMOVAL_LIMIT_S = 5.0, LOOK_S = 0.02;

bool is_folder(const std::string &path) {
    struct stat about;
    return ::stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

/* A name in a folder, and nothing that leads out of it. */
bool is_name(const std::string &name) { return !name.empty() && name.find('/') == std::string::npos && name != ".."; }

/* Why a text could not be written to a file that is there; "" where it could. */
std::string written(const std::string &path, const std::string &text) {
    int handle = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (handle < 0) {
        return system_text();
    }
    std::string refusal = ::write(handle, text.data(), text.size()) < 0 ? system_text() : "";
    ::close(handle);
    return refusal;
}

/* Takes a file out of the page cache, so that it is read, and counted, anew. */
void drop_pages(const std::string &path) {
    int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) {
        throw Failure(printable(path) + ": cannot be read (" + system_text() + ")");
    }
    ::fsync(handle); /* a page that is not written yet is kept */
    ::posix_fadvise(handle, 0, 0, POSIX_FADV_DONTNEED);
    ::close(handle);
}

} // namespace

MemoryGroup::MemoryGroup(const Value &asked, const std::string &root) {
    for (const Value &each : asked.at("parents").list()) {
        if (parent_.empty() && is_folder(root + each.text())) {
            parent_ = root + each.text();
        }
    }
    for (const Value &each : asked.at("reads").list()) {
        if (!is_name(each.text())) {
            throw Failure(std::string(WHAT) + "'" + printable(each.text()) + "' is no file of a control group");
        }
        reads_.push_back(each.text());
    }
    if (const Value *file = asked.find("drops")) {
        drop_pages(file->text());
    }
    path_ = parent_ + "/perfsuite-" + std::to_string(::getpid()) + "-" + std::to_string(monotonic_ns());
    if (parent_.empty() || ::mkdir(path_.c_str(), 0755) != 0) {
        std::string why = parent_.empty() ? "it is not there" : system_text();
        path_.clear();
        throw Failure(WHAT + printable(parent_) + ": no control group can be made (" + why + ")");
    }
    try {
        for (const Value &each : asked.at("limits").list()) {
            limit(each);
        }
    } catch (...) {
        ::rmdir(path_.c_str());
        throw;
    }
}

void MemoryGroup::limit(const Value &file) {
    const std::string &name = file.list().at(0).text();
    bool must_be = file.list().at(2).boolean();
    std::string path = path_ + "/" + name;
    if (must_be && is_name(name) && ::access(path.c_str(), F_OK) != 0) {
        throw Failure(WHAT + printable(parent_) + ": memory is not delegated to groups below it");
    }
    std::string refusal = is_name(name) ? written(path, file.list().at(1).text()) : "it leads out of the group";
    if (must_be && !refusal.empty()) {
        throw Failure(WHAT + printable(path) + ": cannot be written (" + refusal + ")");
    }
}

void MemoryGroup::in_child() const {
    std::string path = path_ + "/cgroup.procs", refusal = written(path, std::to_string(::getpid()));
    if (!refusal.empty()) {
        ::dprintf(2, "perfsuite-worker-failed: %s%s: cannot be written (%s)\n", WHAT, path.c_str(), refusal.c_str());
        ::_exit(1);
    }
}

void MemoryGroup::tell(Value &outcome) {
    Value::List found;
    for (const std::string &each : reads_) {
        std::optional<std::string> content = read_file(path_ + "/" + each);
        found.push_back(Value::List{each, content ? Value(Bytes{std::move(*content)}) : Value()});
    }
    outcome.set("limit", std::move(found));
}

MemoryGroup::~MemoryGroup() {
    for (double until = monotonic_s() + REMOVAL_LIMIT_S; !path_.empty() && monotonic_s() < until; sleep_s(LOOK_S)) {
        std::string left = read_file(path_ + "/cgroup.procs").value_or("");
        for (std::string_view each : words_of(left)) {
            written(parent_ + "/cgroup.procs", std::string(each));
        }
        if (::rmdir(path_.c_str()) == 0 || errno == ENOENT) {
            return;
        }
    }
}

} // namespace perfsuite
