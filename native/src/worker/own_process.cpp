#include "own_process.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <elf.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "perfsuite/clock.h"
#include "failure.h"
#include "sha256.h"
#include "text.h"

namespace perfsuite {

void end_with_parent() {
    const char *parent = std::getenv("PERFSUITE_PARENT");
    if (parent) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (parent != std::to_string(::getppid())) { /* it died before its death was asked for */
            throw Failure("the process that started this worker is gone");
        }
    }
}

Value resident_sample() {
    constexpr std::array<std::string_view, 3> NAMES = {"RssAnon:", "RssFile:", "RssShmem:"};
    Value::List sample{ps_now_ns()};
    std::string status = read_file("/proc/self/status").value_or("");
    for (std::string_view name : NAMES) {
        for (std::string_view line : lines_of(status)) {
            auto words = words_of(line);
            if (words.size() > 1 && words[0] == name && number_in(words[1])) {
                sample.push_back(*number_in(words[1]) * 1024);
            }
        }
    }
    return sample.size() == NAMES.size() + 1 ? Value(sample) : Value();
}

int64_t peak_rss_bytes() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return static_cast<int64_t>(used.ru_maxrss) * 1024;
}

namespace {

/* One line of /proc/self/maps that has a file. */
struct Mapping {
    uintptr_t begin;
    uintptr_t end;
    std::string_view rights; /* "r-xp" */
    uint64_t offset;         /* of its begin in the file */
    std::string_view path;
};

/* "begin-end rights offset device inode     path", a path with blanks to its line's end. */
std::vector<Mapping> mappings_in(std::string_view maps) {
    std::vector<Mapping> found;
    for (std::string_view line : lines_of(maps)) {
        size_t slash = line.find('/');
        auto words = words_of(line.substr(0, slash));
        size_t dash = words.empty() ? std::string_view::npos : words[0].find('-');
        if (slash == std::string_view::npos || words.size() < 3 || dash == std::string_view::npos) {
            continue;
        }
        auto hex = [](std::string_view digits) { return std::stoull(std::string(digits), nullptr, 16); };
        found.push_back({hex(words[0].substr(0, dash)), hex(words[0].substr(dash + 1)), words[1], hex(words[2]),
                         line.substr(slash)});
    }
    return found;
}

int64_t copied(const Mapping &mapping) {
    void *begin = reinterpret_cast<void *>(mapping.begin);
    size_t size = mapping.end - mapping.begin;
    int executed = mapping.rights[2] == 'x' ? PROT_EXEC : 0;
    if (mprotect(begin, size, PROT_READ | PROT_WRITE | executed) != 0) {
        return 0;
    }
    size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (uintptr_t page = mapping.begin; page < mapping.end; page += page_bytes) {
        volatile char *first = reinterpret_cast<volatile char *>(page);
        /* cppcheck-suppress selfAssignment ; the write gives the process a page of its own */
        *first = *first;
    }
    if (mprotect(begin, size, PROT_READ | executed) != 0) {
        throw Failure("the engine's code cannot be protected again once it was copied; run again", "EngineError");
    }
    return static_cast<int64_t>(size);
}

/* The id in a section of notes, or none. */
std::optional<std::string> noted_build_id(std::string_view notes) {
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
        Elf64_Nhdr header;
        std::memcpy(&header, notes.data() + at, sizeof header);
        size_t name_at = at + sizeof header;
        size_t id_at = name_at + ((header.n_namesz + size_t{3}) & ~size_t{3});
        if (id_at > notes.size() || header.n_descsz > notes.size() - id_at) {
            return std::nullopt;
        }
        if (header.n_type == NT_GNU_BUILD_ID && notes.substr(name_at, 3) == "GNU") {
            std::string digits;
            for (char each : notes.substr(id_at, header.n_descsz)) {
                auto byte = static_cast<unsigned char>(each);
                digits += "0123456789abcdef"[byte >> 4];
                digits += "0123456789abcdef"[byte & 15];
            }
            return digits;
        }
        at = id_at + ((header.n_descsz + size_t{3}) & ~size_t{3});
    }
    return std::nullopt;
}

std::optional<std::string> gnu_build_id(std::string_view content) {
    Elf64_Ehdr header;
    if (content.size() < sizeof header || content.substr(0, 6) != std::string_view("\x7f" "ELF\x02\x01", 6)) {
        return std::nullopt;
    }
    std::memcpy(&header, content.data(), sizeof header);
    for (size_t index = 0; index < header.e_shnum; index++) {
        Elf64_Shdr section;
        size_t at = header.e_shoff + index * header.e_shentsize;
        if (at > content.size() || sizeof section > content.size() - at) {
            return std::nullopt;
        }
        std::memcpy(&section, content.data() + at, sizeof section);
        if (section.sh_type == SHT_NOTE && section.sh_offset <= content.size()) {
            if (auto found = noted_build_id(content.substr(section.sh_offset, section.sh_size))) {
                return found;
            }
        }
    }
    return std::nullopt;
}

/* The libraries that are the engine's identity, in the order in which they are digested. */
constexpr std::array<std::string_view, 4> ENGINE_LIBRARIES = {"libggml", "libggml-base", "libggml-cpu", "libllama"};

/* "libggml-cpu" of "/a/libggml-cpu.so.0". */
std::string_view library_name(std::string_view path) {
    std::string_view name = path.substr(path.rfind('/') + 1);
    return name.substr(0, name.find(".so"));
}

/* The mapped files of each library that is llama.cpp's by its name. */
std::map<std::string, std::set<std::string>> mapped_engine(std::string_view maps) {
    std::map<std::string, std::set<std::string>> found;
    for (const Mapping &mapping : mappings_in(maps)) {
        std::string_view name = library_name(mapping.path);
        for (std::string_view beginning : {"libllama", "libggml", "libmtmd"}) {
            if (name.substr(0, beginning.size()) == beginning) {
                found[std::string(name)].insert(std::string(mapping.path));
            }
        }
    }
    return found;
}

bool is_same_file(const std::string &first, const std::string &second) {
    struct stat one, other;
    return stat(first.c_str(), &one) == 0 && stat(second.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* The files of a folder by the names of their libraries, of which each may have several. */
std::multimap<std::string, std::string> libraries_in(const std::string &folder) {
    std::multimap<std::string, std::string> found;
    std::unique_ptr<DIR, int (*)(DIR *)> opened(opendir(folder.c_str()), closedir);
    while (const dirent *entry = opened ? readdir(opened.get()) : nullptr) {
        found.emplace(library_name(entry->d_name), folder + "/" + entry->d_name);
    }
    return found;
}

} // namespace

FilePlace mapped_place(uintptr_t address) {
    std::string maps = required_file("/proc/self/maps");
    for (const Mapping &mapping : mappings_in(maps)) {
        if (mapping.begin <= address && address < mapping.end) {
            return {std::string(mapping.path), address - mapping.begin + mapping.offset};
        }
    }
    throw Failure("uprobes: an address is mapped from no file, so that no probe can be set there");
}

int64_t own_code_pages(const std::string &library_dir) {
    std::string folder = real_path(library_dir), maps = read_file("/proc/self/maps").value_or("");
    int64_t n_bytes = 0;
    for (const Mapping &mapping : mappings_in(maps)) {
        bool is_read_only = mapping.rights.substr(0, 2) == "r-" && mapping.rights.substr(3, 1) == "p";
        if (is_read_only && folder_of(std::string(mapping.path)) == folder) {
            n_bytes += copied(mapping);
        }
    }
    return n_bytes;
}

void refuse_foreign_libraries(const std::string &library_dir) {
    std::string maps = required_file("/proc/self/maps");
    auto own = libraries_in(library_dir);
    for (const auto &[name, paths] : mapped_engine(maps)) {
        auto [first, last] = own.equal_range(name);
        for (const std::string &path : paths) {
            if (first != last && std::none_of(first, last, [&](auto &each) { return is_same_file(each.second, path); })) {
                throw Failure(library_dir + ": " + name + ".so was loaded from " + path + ", not from there; " +
                                  "RUNPATH or LD_LIBRARY_PATH leads elsewhere: run \"patchelf --set-rpath '$ORIGIN'\" on " +
                                  "the folder's libraries, or name the folder that they were built in",
                              "EngineError");
            }
        }
    }
}

void refuse_other_engine(const std::string &library_dir, const std::string &engine_build_id) {
    refuse_foreign_libraries(library_dir);
    std::string maps = required_file("/proc/self/maps");
    auto mapped = mapped_engine(maps);
    Sha256 digest;
    std::string seen;
    bool is_other = false;
    for (std::string_view name : ENGINE_LIBRARIES) {
        const std::set<std::string> &paths = mapped[std::string(name)];
        std::set<std::string> ids;
        for (const std::string &path : paths) {
            ids.insert(library_build_id(path));
            seen += (seen.empty() ? "" : ", ") + path;
        }
        is_other = is_other || ids.size() != 1;
        digest.add(std::string(name) + "=" + (ids.empty() ? "" : *ids.begin()) + "\n");
    }
    if (is_other) {
        throw Failure(library_dir + ": the process maps another llama.cpp (" + (seen.empty() ? "none" : seen) +
                          ") than build " + engine_build_id + "; load no other copy in a worker",
                      "EngineError");
    }
    if (std::string id = digest.hex().substr(0, 16); id != engine_build_id) {
        throw Failure(library_dir + ": holds build " + id + ", the plan was made for " + engine_build_id + "; run again",
                      "EngineError");
    }
}

std::string library_build_id(const std::string &path) {
    std::string content = required_file(path);
    if (auto found = gnu_build_id(content)) {
        return *found;
    }
    Sha256 digest;
    digest.add(content);
    return digest.hex().substr(0, 40);
}

} // namespace perfsuite
