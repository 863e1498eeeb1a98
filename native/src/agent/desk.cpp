#include "desk.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../worker/failure.h"
#include "../worker/text.h"
#include "link.h"
#include "processes.h"

namespace perfsuite {

namespace {

/* Longest to wait for a process that was asked to end; it gives the device back first. */
constexpr double END_LIMIT_S = 60.0, END_LOOK_S = 0.01;

} // namespace

Desk::Desk(std::vector<std::string> command) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
        throw Failure("no pipe can be made (" + system_text() + ")");
    }
    std::vector<char *> arguments;
    for (std::string &each : command) {
        arguments.push_back(each.data());
    }
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
        ::dup2(in[0], 0);
        ::dup2(out[1], 1);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
    if (pid_ < 0) {
        throw Failure("the program cannot be started (" + system_text() + ")");
    }
}

Desk::~Desk() {
    ::close(input_);
    for (double until = monotonic_s() + END_LIMIT_S; ::waitpid(pid_, nullptr, WNOHANG) == 0; sleep_s(END_LOOK_S)) {
        if (monotonic_s() > until) {
            ::kill(pid_, SIGKILL);
        }
    }
    ::close(output_);
}

bool Desk::send(const Value &message) {
    std::string frame = framed(pack(message));
    for (size_t at = 0; at < frame.size();) {
        ssize_t n_bytes = ::write(input_, &frame[at], frame.size() - at);
        if (n_bytes < 0 && errno != EINTR) {
            return false;
        }
        at += n_bytes < 0 ? 0 : static_cast<size_t>(n_bytes);
    }
    return true;
}

/* The next message; none at the end, or past the limit. */
std::optional<Value> Desk::received(double until_s) {
    while (true) {
        if (!has_begun_ && held_.find(PREAMBLE) != std::string::npos) {
            held_.erase(0, held_.find(PREAMBLE) + PREAMBLE.size());
            has_begun_ = true;
        }
        if (has_begun_ && held_.size() >= FRAME_HEAD_BYTES) {
            size_t n_body = frame_body_bytes(held_);
            if (held_.size() - FRAME_HEAD_BYTES >= n_body) {
                Value message = unpack(std::string_view(held_).substr(FRAME_HEAD_BYTES, n_body));
                held_.erase(0, FRAME_HEAD_BYTES + n_body);
                return message;
            }
        }
        double left_s = until_s - monotonic_s();
        pollfd polled = {output_, POLLIN, 0};
        if (left_s <= 0.0 || ::poll(&polled, 1, static_cast<int>(std::min(left_s, 60.0) * 1000.0 + 0.999)) < 0) {
            if (left_s > 0.0 && errno == EINTR) {
                continue;
            }
            return std::nullopt;
        }
        if (polled.revents) {
            char chunk[65536];
            ssize_t n_bytes = ::read(output_, chunk, sizeof chunk);
            if (n_bytes == 0 || (n_bytes < 0 && errno != EINTR)) {
                return std::nullopt;
            }
            held_.append(chunk, n_bytes < 0 ? 0 : static_cast<size_t>(n_bytes));
        }
    }
}

std::optional<Value> Desk::ask(const Value &request, double limit_s) {
    Value message = request;
    message.set("id", ++n_asked_);
    double until_s = monotonic_s() + limit_s;
    if (!send(message)) {
        return std::nullopt;
    }
    while (std::optional<Value> found = received(until_s)) {
        const std::string &kind = found->at("kind").text();
        if (kind == "answer" || kind == "error" || kind == "refused") {
            return found;
        }
    }
    return std::nullopt;
}

std::optional<Value> Desk::end(double limit_s) {
    Value message;
    message.set("kind", "bye");
    double until_s = monotonic_s() + limit_s;
    if (!send(message)) {
        return std::nullopt;
    }
    while (std::optional<Value> found = received(until_s)) {
        if (found->at("kind").text() == "ended") {
            return found;
        }
    }
    return std::nullopt;
}

} // namespace perfsuite
