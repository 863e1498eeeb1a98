#include "uprobes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/perf_event.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "own_process.h"
#include "text.h"

/* Of the engine library (native/src/engine/uprobe.c). */
extern "C" int ps_uprobe_open(uint32_t type, const char *path, uint64_t offset, int at_return);

namespace perfsuite {

namespace {

constexpr const char *PMU_TYPE = "/sys/bus/event_source/devices/uprobe/type";
constexpr size_t RING_PAGES = 16;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

uint32_t pmu_type() {
    std::string content = read_file(PMU_TYPE).value_or("");
    auto words = words_of(content);
    auto number = words.empty() ? std::nullopt : number_in(words[0]);
    if (!number) {
        throw Failure(std::string("uprobes: ") + PMU_TYPE + " is not there; the kernel needs CONFIG_UPROBE_EVENTS");
    }
    return static_cast<uint32_t>(*number);
}

uintptr_t address_of(const Library &library, const std::string &function) {
    try {
        return reinterpret_cast<uintptr_t>(library.function(static_cast<void (*)()>(nullptr), function.c_str()));
    } catch (const Failure &) {
        throw Failure("uprobes: no library of this engine has " + function);
    }
}

int opened(const Library &library, uint32_t pmu, const std::string &function, const FilePlace &place, int at_return) {
    int descriptor = PS_FUNCTION(library, ps_uprobe_open)(pmu, place.path.c_str(), place.offset, at_return);
    if (descriptor < 0) {
        throw Failure("uprobes: no probe at the " + std::string(at_return ? "return" : "entry") + " of " + function +
                      " in " + place.path + " (" + system_text(-descriptor) + "); it needs root or CAP_PERFMON");
    }
    return descriptor;
}

} // namespace

/* One event with the memory that the kernel writes its samples to: nothing is ever taken out, so one that is full loses
 * what comes then, and says so. */
struct Uprobes::Ring {
    explicit Ring(int opened) : descriptor(opened), n_bytes((1 + RING_PAGES) * page_bytes()) {
        memory = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (memory == MAP_FAILED) {
            int error = errno;
            close(descriptor);
            throw Failure("uprobes: no memory for a ring (" + system_text(error) + "); raise perf_event_mlock_kb");
        }
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    ~Ring() {
        munmap(memory, n_bytes);
        close(descriptor);
    }

    Bytes content() const {
        const auto *page = static_cast<const perf_event_mmap_page *>(memory);
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
        size_t size = static_cast<size_t>(std::min<uint64_t>(head, RING_PAGES * page_bytes()));
        return {std::string(static_cast<const char *>(memory) + page_bytes(), size)};
    }

    int descriptor;
    size_t n_bytes;
    void *memory;
};

Uprobes::Uprobes(const Library &library, const Value::List &functions) {
    uint32_t pmu = pmu_type();
    for (const Value &function : functions) {
        FilePlace place = mapped_place(address_of(library, function.text()));
        for (int at_return : {0, 1}) {
            int descriptor = opened(library, pmu, function.text(), place, at_return);
            rings_.emplace_back(function.text(), std::make_unique<Ring>(descriptor));
        }
    }
}

Uprobes::~Uprobes() = default;

void Uprobes::count(bool is_counting) const {
    for (const auto &[function, ring] : rings_) {
        ioctl(ring->descriptor, is_counting ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
    }
}

Value Uprobes::rings() const {
    Value found = Value::Map{};
    for (size_t at = 0; at + 1 < rings_.size(); at += 2) {
        found.set(rings_[at].first, Value::List{rings_[at].second->content(), rings_[at + 1].second->content()});
    }
    return found;
}

} // namespace perfsuite
