#include "own_output.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "failure.h"
#include "text.h"

namespace perfsuite {

namespace {

int own_output = STDOUT_FILENO;

} // namespace

void keep_own_output() {
    own_output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (own_output < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        own_output = STDOUT_FILENO;
        throw Failure("the worker cannot keep an output of its own (" + system_text() + ")");
    }
}

void say_line(const std::string &text) {
    std::string line = "\n" + text + "\n";
    for (size_t at = 0; at < line.size();) {
        ssize_t n_bytes = ::write(own_output, line.data() + at, line.size() - at);
        if (n_bytes < 0 && errno != EINTR) {
            return; /* nobody listens any more */
        }
        at += n_bytes < 0 ? 0 : static_cast<size_t>(n_bytes);
    }
}

} // namespace perfsuite
