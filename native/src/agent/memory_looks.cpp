#include "memory_looks.h"

#include <algorithm>
#include <dirent.h>

#include "../worker/text.h"
#include "processes.h"

namespace perfsuite {

namespace {

constexpr double LEAST_PERIOD_S = 0.005;

/* More than a run of the longest limit takes; and more changes of a device's memory than anybody reads. */
constexpr size_t MOST_LOOKS = 200000, MOST_DEVICE_LOOKS = 10000;

/* A device's file says so in this line. */
constexpr std::string_view DRM_MARK = "drm-driver:";

} // namespace

MemoryLooks::MemoryLooks(const Value &asked)
    : period_s_(std::max(LEAST_PERIOD_S, asked.at("period_s").number())), asks_devices_(asked.find("device_period_s")) {
    for (const Value &each : asked.at("fields").list()) {
        fields_.push_back(each.text() + ":");
    }
    if (asks_devices_) {
        device_period_s_ = std::max(LEAST_PERIOD_S, asked.at("device_period_s").number());
    }
}

void MemoryLooks::started(pid_t pid) {
    folder_ = "/proc/./" + std::to_string(pid); /* the dot: see processes.cpp */
    status_due_s_ = monotonic_s();
    devices_due_s_ = asks_devices_ ? status_due_s_ : NEVER_S;
}

void MemoryLooks::take_due() {
    double now_s = monotonic_s();
    if (now_s >= status_due_s_) {
        status_due_s_ = status_.size() < MOST_LOOKS ? now_s + period_s_ : NEVER_S;
        look_at_status();
    }
    if (now_s >= devices_due_s_) {
        devices_due_s_ = devices_.size() < MOST_DEVICE_LOOKS ? now_s + device_period_s_ : NEVER_S;
        look_at_devices();
    }
}

void MemoryLooks::look_at_status() {
    long long at_ns = monotonic_ns();
    std::string content = read_file(folder_ + "/status").value_or(""), chosen;
    for (std::string_view line : lines_of(content)) {
        for (const std::string &each : fields_) {
            if (line.compare(0, each.size(), each) == 0) {
                chosen += std::string(line) + "\n";
            }
        }
    }
    status_.push_back(Value::List{at_ns, Bytes{std::move(chosen)}});
}

void MemoryLooks::look_at_devices() {
    std::string path = folder_ + "/fdinfo", whole;
    DIR *folder = ::opendir(path.c_str());
    if (!folder) {
        refusal_ = system_text();
        return;
    }
    Value::List found;
    while (dirent *entry = ::readdir(folder)) {
        std::string name = entry->d_name;
        std::string content = number_in(name) ? read_file(path + "/" + name).value_or("") : "";
        if (content.find(DRM_MARK) != std::string::npos) {
            whole += name + "\n" + content;
            found.push_back(Value::List{name, Bytes{std::move(content)}});
        }
    }
    ::closedir(folder);
    if (devices_.empty() || whole != last_devices_) {
        devices_.push_back(std::move(found));
        last_devices_ = std::move(whole);
    }
}

void MemoryLooks::tell(Value &outcome) {
    Value seen;
    seen.set("status", std::move(status_));
    seen.set("devices", std::move(devices_));
    seen.set("refusal", std::move(refusal_));
    outcome.set("memory", std::move(seen));
}

} // namespace perfsuite
