#include "memory_guard.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>

#include "failure.h"

namespace perfsuite {

namespace {

// What a process can have without swapping, as the kernel estimates it; 0 where it does not say.
uint64_t available_bytes() {
    const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen("/proc/meminfo", "r"), std::fclose);
    char line[256];
    while (file && std::fgets(line, sizeof line, file.get())) {
        uint64_t kib = 0;
        if (std::sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1) {
            return kib * 1024;
        }
    }
    return 0;
}

std::string gibibytes(uint64_t n_bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(n_bytes) / (1 << 30));
    return text;
}

} // namespace

void guard_memory(const char *gguf_path) {
    struct stat file {};
    static const uint64_t available = available_bytes(); // before the first model, for the limit counts what that takes
    if (available == 0 || stat(gguf_path, &file) != 0) {
        return;
    }
    const auto size = static_cast<uint64_t>(file.st_size);
    if (size > available) {
        throw failure{std::string(gguf_path) + ": has " + gibibytes(size) + ", of memory there are " +
                      gibibytes(available) + "; take a smaller model or quantisation"};
    }
    rlimit limit{};
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur > available) {
        limit.rlim_cur = available;
        setrlimit(RLIMIT_DATA, &limit);
    }
}

} // namespace perfsuite
