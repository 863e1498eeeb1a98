#include "left_files.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "json.h"
#include "restore.h"

namespace perfsuite {

namespace {

namespace fs = std::filesystem;

/* Most of a file that crosses the link at once. */
constexpr int64_t PIECE_BYTES = int64_t{4} << 20;

/* Opens a file below a folder, and none that a link leads to, wherever in the name it is. */
int opened(const std::string &folder, const std::string &name) {
    int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t at = 0; handle >= 0 && at < name.size();) {
        size_t end = std::min(name.find('/', at), name.size());
        std::string part = name.substr(at, end - at);
        int kind = end < name.size() ? O_DIRECTORY : O_NONBLOCK;
        int next = ::openat(handle, part.empty() ? "." : part.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind);
        int error = errno;
        ::close(handle);
        errno = error;
        handle = next;
        at = end + 1;
    }
    return handle;
}

/* Fills the content from a handle's offset on, as far as there is any; whether it could be read. */
bool read_from(int handle, int64_t offset, std::string &content) {
    size_t n_bytes = 0;
    ssize_t n_read = 0;
    while (n_bytes < content.size() && (n_read = ::pread(handle, &content[n_bytes], content.size() - n_bytes,
                                                         static_cast<off_t>(offset + static_cast<int64_t>(n_bytes)))) > 0) {
        n_bytes += static_cast<size_t>(n_read);
    }
    content.resize(n_bytes);
    return n_read >= 0;
}

} // namespace

Value LeftFiles::begin(bool is_wanted) {
    folder_ = nullptr;
    if (is_wanted) {
        folder_ = std::make_unique<WorkFolder>(parent_);
    }
    return is_wanted ? Value(folder_->path) : Value();
}

Value LeftFiles::found() const {
    std::vector<std::pair<std::string, int64_t>> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder(), error), end; !error && at != end; at.increment(error)) {
        struct stat about;
        if (::lstat(at->path().c_str(), &about) == 0 && S_ISREG(about.st_mode)) {
            files.emplace_back(at->path().string().substr(folder().size() + 1), about.st_size);
        }
    }
    if (error) {
        throw Failure(folder() + ": the files of the run cannot be listed (" + error.message() + ")");
    }
    std::sort(files.begin(), files.end());
    Value::List told;
    for (const auto &[name, n_bytes] : files) {
        if (printable(name) != name) {
            throw Failure("the run left a file named '" + printable(name) + "', a name that no message can hold");
        }
        told.push_back(Value::List{name, static_cast<long long>(n_bytes)});
    }
    return told;
}

Value LeftFiles::piece(const std::string &name, int64_t offset, int64_t most_bytes) const {
    if (!is_within(name)) {
        throw Failure("'" + printable(name) + "' is not a name of a file in the folder of a run");
    }
    int handle = opened(folder(), name);
    std::string why = handle < 0 ? system_text() : "no regular file";
    struct stat about;
    std::string content(static_cast<size_t>(std::clamp(most_bytes, int64_t{0}, PIECE_BYTES)), '\0');
    bool is_read = handle >= 0 && ::fstat(handle, &about) == 0 && S_ISREG(about.st_mode) && offset >= 0 &&
                   read_from(handle, offset, content);
    if (handle >= 0) {
        ::close(handle);
    }
    if (!is_read) {
        throw Failure(printable(name) + ": cannot be read (" + why + ")");
    }
    return Bytes{std::move(content)};
}

const std::string &LeftFiles::folder() const {
    if (!folder_) {
        throw Failure("the files of the run are gone; run again");
    }
    return folder_->path;
}

} // namespace perfsuite
