#include "text.h"

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "failure.h"

namespace perfsuite {

std::string system_text(int error) { return std::strerror(error); }

std::string system_text() { return system_text(errno); }

namespace {

/* A descriptor that is closed with its scope. */
class Opened {
  public:
    explicit Opened(int descriptor) : descriptor_(descriptor) {}
    Opened(const Opened &) = delete;
    Opened &operator=(const Opened &) = delete;
    ~Opened() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
    }
    int get() const { return descriptor_; }

  private:
    int descriptor_;
};

bool write_all(int descriptor, std::string_view content) {
    while (!content.empty()) {
        ssize_t n_written = ::write(descriptor, content.data(), content.size());
        if (n_written < 0 && errno != EINTR) {
            return false;
        }
        content.remove_prefix(n_written < 0 ? 0 : static_cast<size_t>(n_written));
    }
    return true;
}

} // namespace

std::optional<std::string> read_file(const std::string &path) {
    Opened file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) {
        return std::nullopt;
    }
    std::string content;
    char chunk[65536];
    while (true) {
        ssize_t n_read = ::read(file.get(), chunk, sizeof chunk);
        if (n_read < 0 && errno == EINTR) {
            continue;
        }
        if (n_read < 0) {
            return std::nullopt;
        }
        if (n_read == 0) {
            return content;
        }
        content.append(chunk, static_cast<size_t>(n_read));
    }
}

std::string required_file(const std::string &path) {
    std::optional<std::string> content = read_file(path);
    if (!content) {
        throw Failure(path + ": cannot be read (" + system_text() + ")");
    }
    return std::move(*content);
}

void write_whole(const std::string &path, std::string_view content) {
    std::string partial = path + ".part";
    {
        Opened file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (file.get() >= 0 && write_all(file.get(), content) && ::rename(partial.c_str(), path.c_str()) == 0) {
            return;
        }
    }
    int error = errno;
    ::unlink(partial.c_str());
    throw Failure(path + ": cannot be written (" + system_text(error) + ")");
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
    constexpr const char *BLANKS = " \t\r\n";
    std::vector<std::string_view> words;
    for (size_t at = line.find_first_not_of(BLANKS); at != std::string_view::npos;) {
        size_t end = line.find_first_of(BLANKS, at);
        words.push_back(line.substr(at, end == std::string_view::npos ? end : end - at));
        at = end == std::string_view::npos ? end : line.find_first_not_of(BLANKS, end);
    }
    return words;
}

std::optional<long long> number_in(std::string_view text) {
    long long value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

std::string folder_of(const std::string &path) {
    size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string real_path(const std::string &path) {
    char found[PATH_MAX];
    return ::realpath(path.c_str(), found) ? found : path;
}

std::string own_program() {
    constexpr std::string_view LOADER = "/lib/ld-musl.so";
    std::string program = real_path("/proc/self/exe");
    bool is_loader = program.size() > LOADER.size() && program.substr(program.size() - LOADER.size()) == LOADER;
    return is_loader ? program.substr(0, program.size() - LOADER.size()) + "/perfsuite-worker" : program;
}

} // namespace perfsuite
