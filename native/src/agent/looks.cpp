#include "looks.h"

#include <algorithm>
#include <glob.h>

#include "processes.h"
#include "restore.h"

namespace perfsuite {

namespace {

constexpr double LEAST_PERIOD_S = 0.05;

std::vector<std::string> paths_in(const Value &list) {
    std::vector<std::string> paths;
    for (const Value &each : list.list()) {
        paths.push_back(each.text());
    }
    return paths;
}

/* The paths below the root that match one with a '*', for a desk that does not know the device; itself without one. */
std::vector<std::string> matches(const std::string &root, const std::string &path) {
    std::vector<std::string> paths;
    glob_t found;
    if (path.find('*') == std::string::npos) {
        return {path};
    }
    if (::glob((root + "/" + path).c_str(), 0, nullptr, &found) == 0) {
        for (size_t each = 0; each < found.gl_pathc; each++) {
            paths.push_back(found.gl_pathv[each] + root.size() + 1);
        }
        ::globfree(&found);
    }
    return paths;
}

} // namespace

Looks::Looks(const Value &asked, std::string root)
    : root_(std::move(root)), period_s_(std::max(LEAST_PERIOD_S, asked.at("period_s").number())),
      due_s_(monotonic_s() + period_s_), most_reads_(static_cast<size_t>(asked.at("most_reads").whole())),
      most_looks_(static_cast<size_t>(asked.at("most_looks").whole())) {
    for (const std::string &each : paths_in(asked.at("power"))) {
        std::vector<std::string> found = matches(root_, each);
        power_.insert(power_.end(), found.begin(), found.end());
    }
    for (const Value &group : asked.at("groups").list()) {
        groups_.emplace_back();
        for (const Value &source : group.list()) {
            std::vector<std::string> paths = paths_in(source);
            if (paths.size() != 1) {
                groups_.back().sources.push_back(std::move(paths));
                continue;
            }
            for (std::string &each : matches(root_, paths[0])) {
                groups_.back().sources.push_back({std::move(each)});
            }
        }
    }
}

void Looks::read(const Source &source, Value::List &reads) const {
    for (const std::string &each : source) {
        std::optional<std::string> content = read_line(root_ + "/" + each);
        reads.push_back(Value::List{each, content ? Value(Bytes{std::move(*content)}) : Value()});
    }
}

void Looks::finish(Value::List reads) {
    long long before_ns = monotonic_ns();
    read(power_, reads);
    Value look;
    look.set("at_ns", (before_ns + monotonic_ns()) / 2);
    look.set("reads", std::move(reads));
    taken_.push_back(std::move(look));
}

void Looks::take_all() {
    Value::List reads;
    for (const Group &group : groups_) {
        for (const Source &source : group.sources) {
            read(source, reads);
        }
    }
    finish(std::move(reads));
}

void Looks::take_due() {
    double now_s = monotonic_s();
    if (now_s < due_s_) {
        return;
    }
    due_s_ = now_s + period_s_;
    if (taken_.size() >= most_looks_) {
        due_s_ = now_s + 1e9;
        return;
    }
    Value::List reads;
    for (Group &group : groups_) {
        size_t n_reads = 0;
        for (size_t n_tried = 0; n_tried < group.sources.size(); n_tried++) {
            const Source &source = group.sources[group.next];
            size_t n_files = std::max<size_t>(1, source.size());
            if (n_reads > 0 && n_reads + n_files > most_reads_) {
                break;
            }
            read(source, reads);
            group.next = (group.next + 1) % group.sources.size();
            n_reads += n_files;
        }
    }
    finish(std::move(reads));
}

} // namespace perfsuite
