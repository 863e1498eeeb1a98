#include "files.h"

#include <cerrno>
#include <optional>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../worker/sha256.h"
#include "../worker/text.h"
#include "restore.h"

namespace perfsuite {

namespace {

/* More than any file of the kernel's holds that is read; and of all together, and so many of them. */
constexpr size_t MOST_FILE_BYTES = 65536, MOST_BYTES = size_t{32} << 20, MOST_FILES = 50000;

constexpr size_t CHUNK_BYTES = size_t{1} << 20;

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

bool is_within(const std::string &name) {
    return !name.empty() && name[0] != '/' && ("/" + name + "/").find("/../") == std::string::npos &&
           name.find('\0') == std::string::npos;
}

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
            digest.add(std::string_view(chunk).substr(0, static_cast<size_t>(n_read)));
            look();
        }
    } catch (...) {
        ::close(handle);
        throw;
    }
    ::close(handle);
    return n_read < 0 ? "" : digest.hex();
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
