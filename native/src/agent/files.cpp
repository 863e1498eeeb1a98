#include "files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/text.h"
#include "restore.h"

namespace perfsuite {

namespace {

/* More than any file of the kernel's holds that is read; and of all together, and so many of them. */
constexpr size_t MOST_FILE_BYTES = 65536, MOST_BYTES = size_t{32} << 20, MOST_FILES = 50000;

constexpr size_t CHUNK_BYTES = size_t{1} << 20;

constexpr std::array<uint32_t, 64> ROUND_CONSTANTS = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Source: FIPS 180-4, section 6.2. */
class Sha256 {
  public:
    void add(const uint8_t *bytes, size_t n_bytes) {
        n_bytes_ += n_bytes;
        while (n_bytes > 0) {
            size_t n_taken = std::min(n_bytes, sizeof block_ - n_held_);
            std::memcpy(block_ + n_held_, bytes, n_taken);
            n_held_ += n_taken;
            bytes += n_taken;
            n_bytes -= n_taken;
            if (n_held_ == sizeof block_) {
                digest_block();
                n_held_ = 0;
            }
        }
    }

    std::string hexadecimal() {
        uint64_t n_bits = n_bytes_ * 8;
        const uint8_t one = 0x80, zero = 0;
        add(&one, 1);
        while (n_held_ != 56) {
            add(&zero, 1);
        }
        uint8_t length[8];
        for (int at = 0; at < 8; at++) {
            length[at] = static_cast<uint8_t>(n_bits >> (56 - 8 * at));
        }
        add(length, sizeof length);
        std::string text;
        char word[12];
        for (uint32_t each : state_) {
            std::snprintf(word, sizeof word, "%08x", each);
            text += word;
        }
        return text;
    }

  private:
    static uint32_t turned(uint32_t value, int n_bits) { return value >> n_bits | value << (32 - n_bits); }

    void digest_block() {
        uint32_t words[64];
        for (int at = 0; at < 16; at++) {
            const uint8_t *bytes = block_ + 4 * at;
            words[at] = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
        }
        for (int at = 16; at < 64; at++) {
            uint32_t early = words[at - 15], late = words[at - 2];
            words[at] = words[at - 16] + (turned(early, 7) ^ turned(early, 18) ^ early >> 3) + words[at - 7] +
                        (turned(late, 17) ^ turned(late, 19) ^ late >> 10);
        }
        auto [a, b, c, d, e, f, g, h] = state_;
        for (size_t at = 0; at < 64; at++) {
            uint32_t first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) +
                             ROUND_CONSTANTS[at] + words[at];
            uint32_t second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d + first;
            d = c;
            c = b;
            b = a;
            a = first + second;
        }
        const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
        for (size_t at = 0; at < 8; at++) {
            state_[at] += added[at];
        }
    }

    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t block_[64];
    size_t n_held_ = 0;
    uint64_t n_bytes_ = 0;
};

std::vector<std::string> matches(const std::string &root, const Value::List &patterns) {
    std::vector<std::string> paths;
    for (const Value &each : patterns) {
        glob_t found;
        if (::glob((root + "/" + each.text()).c_str(), 0, nullptr, &found) == 0) {
            paths.insert(paths.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
            ::globfree(&found);
        }
        if (paths.size() > MOST_FILES) {
            throw Failure("more than " + std::to_string(MOST_FILES) + " files match; ask for fewer");
        }
    }
    return paths;
}

/* The first bytes of a regular file; none where it is none, nil where it cannot be read. */
std::optional<Value> content_of(const std::string &path) {
    struct stat about;
    if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return std::nullopt;
    }
    int handle = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (handle < 0) {
        return Value();
    }
    std::string content(MOST_FILE_BYTES, '\0');
    size_t n_bytes = 0;
    ssize_t n_read = 0;
    while (n_bytes < content.size() && (n_read = ::read(handle, &content[n_bytes], content.size() - n_bytes)) > 0) {
        n_bytes += static_cast<size_t>(n_read);
    }
    ::close(handle);
    content.resize(n_bytes);
    return n_read < 0 ? Value() : Value(Bytes{std::move(content)});
}

bool is_within(const std::string &name) {
    return !name.empty() && name[0] != '/' && ("/" + name + "/").find("/../") == std::string::npos &&
           name.find('\0') == std::string::npos;
}

std::string placed(const std::string &folder, const std::string &name) {
    if (!is_within(name)) {
        throw Failure("a file of a folder is named '" + name + "', which leads out of it");
    }
    std::string path = folder + "/" + name;
    made_folder(folder_of(path));
    return path;
}

[[noreturn]] void fail(const std::string &path) {
    throw Failure(path + ": cannot be written (" + system_text() + "); it is not kept", "EngineError");
}

void copy_file(const std::string &source, const std::string &path, const std::function<void()> &look) {
    int from = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
    int to = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    std::string chunk(CHUNK_BYTES, '\0');
    ssize_t n_read = -1;
    while (from >= 0 && to >= 0 && (n_read = ::read(from, chunk.data(), chunk.size())) > 0) {
        if (::write(to, chunk.data(), static_cast<size_t>(n_read)) != n_read) {
            n_read = -1;
            break;
        }
        look();
    }
    int error = errno;
    for (int each : {from, to}) {
        if (each >= 0) {
            ::close(each);
        }
    }
    errno = error;
    if (n_read != 0) {
        fail(path);
    }
}

} // namespace

Value snapshot(const std::string &root, const Value::List &patterns, const Value::List &links) {
    Value::List leads, files;
    size_t n_bytes = 0;
    std::string prefix = real_path(root.empty() ? "/" : root);
    prefix = prefix == "/" ? "" : prefix;
    for (const std::string &path : matches(root, links)) {
        struct stat about;
        std::string real = real_path(path);
        bool is_link = ::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode);
        if (is_link && real.compare(0, prefix.size() + 1, prefix + "/") == 0) {
            leads.push_back(Value::List{path.substr(root.size() + 1), real.substr(prefix.size() + 1)});
        }
    }
    for (const std::string &path : matches(root, patterns)) {
        std::optional<Value> content = content_of(path);
        if (!content) {
            continue;
        }
        n_bytes += content->is_nil() ? 0 : content->bytes().size();
        if (n_bytes > MOST_BYTES) {
            throw Failure("the files that match hold more than " + std::to_string(MOST_BYTES) + " bytes; ask for fewer");
        }
        files.push_back(Value::List{path.substr(root.size() + 1), std::move(*content)});
    }
    Value found;
    found.set("links", std::move(leads));
    found.set("files", std::move(files));
    return found;
}

std::string file_digest(const std::string &path, const std::function<void()> &look) {
    int handle = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat about;
    if (handle < 0 || ::fstat(handle, &about) != 0 || !S_ISREG(about.st_mode)) {
        if (handle >= 0) {
            ::close(handle);
        }
        return "";
    }
    Sha256 digest;
    std::string chunk(CHUNK_BYTES, '\0');
    ssize_t n_read = 0;
    try {
        while ((n_read = ::read(handle, chunk.data(), chunk.size())) > 0) {
            digest.add(reinterpret_cast<const uint8_t *>(chunk.data()), static_cast<size_t>(n_read));
            look();
        }
    } catch (...) {
        ::close(handle);
        throw;
    }
    ::close(handle);
    return n_read < 0 ? "" : digest.hexadecimal();
}

Value folder_digests(const std::string &folder, const std::function<void()> &look) {
    Value found = Value::Map{};
    DIR *opened = ::opendir(folder.c_str());
    std::vector<std::string> names;
    while (opened) {
        dirent *entry = ::readdir(opened);
        if (!entry) {
            break;
        }
        names.push_back(entry->d_name);
    }
    if (opened) {
        ::closedir(opened);
    }
    for (const std::string &name : names) {
        struct stat about;
        std::string path = folder + "/" + name, digest;
        if (::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && !(digest = file_digest(path, look)).empty()) {
            Value told;
            told.set("sha256", digest);
            told.set("n_bytes", static_cast<long long>(about.st_size));
            found.set(name, std::move(told));
        }
    }
    return found;
}

void make_folder(const std::string &folder, const Value &files, const Value &links, const Value &contents,
                 const std::function<void()> &look) {
    struct stat about;
    if (::stat(folder.c_str(), &about) == 0) {
        return;
    }
    std::string draft = folder_of(folder) + "/.part-" + std::to_string(::getpid());
    std::error_code ignored;
    std::filesystem::remove_all(draft, ignored);
    try {
        if (!made_folder(draft)) {
            fail(draft);
        }
        for (const auto &[name, source] : files.map()) {
            copy_file(source.text(), placed(draft, name), look);
        }
        for (const auto &[name, target] : links.map()) {
            if (!is_within(target.text()) || ::symlink(target.text().c_str(), placed(draft, name).c_str()) != 0) {
                fail(name);
            }
        }
        for (const auto &[name, content] : contents.map()) {
            write_whole(placed(draft, name), content.bytes());
        }
        if (::rename(draft.c_str(), folder.c_str()) != 0 && ::stat(folder.c_str(), &about) != 0) {
            fail(folder);
        }
    } catch (...) {
        std::filesystem::remove_all(draft, ignored);
        throw;
    }
    std::filesystem::remove_all(draft, ignored);
}

} // namespace perfsuite
