#include "link.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "processes.h"

namespace perfsuite {

namespace {

/* Longest message, bytes: a record of a long run has tens of MB. */
constexpr size_t FRAME_LIMIT_BYTES = size_t{256} << 20;

/* Longest to wait, once all is over, for a desk that takes no more of a message. */
constexpr double LAST_WORD_S = 2.0;

/* How often is looked whether something has to be done. */
constexpr double TICK_S = 1.0;

/* Most requests that wait; a desk asks for one thing after the other. */
constexpr size_t MOST_REQUESTS = 1000;

volatile std::sig_atomic_t is_signalled = 0;
int signal_pipe[2] = {-1, -1};

void on_signal(int) {
    int error = errno;
    is_signalled = 1;
    ssize_t ignored = ::write(signal_pipe[1], "x", 1);
    static_cast<void>(ignored);
    errno = error;
}

std::string number_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

} // namespace

std::string framed(const std::string &body) {
    std::string frame;
    for (int shift = 24; shift >= 0; shift -= 8) {
        frame += static_cast<char>(body.size() >> shift);
    }
    return frame + body;
}

size_t frame_body_bytes(std::string_view frame) {
    size_t n_body = 0;
    for (size_t byte = 0; byte < FRAME_HEAD_BYTES; byte++) {
        n_body = n_body << 8 | static_cast<uint8_t>(frame[byte]);
    }
    return n_body;
}

void Link::begin() {
    if (::pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw Failure("no pipe can be made");
    }
    struct sigaction action = {};
    action.sa_handler = on_signal;
    for (int each : {SIGINT, SIGTERM, SIGHUP}) {
        ::sigaction(each, &action, nullptr);
    }
    ::signal(SIGPIPE, SIG_IGN);
    heard_s_ = monotonic_s();
    write(std::string(PREAMBLE));
}

bool Link::is_over() const { return is_wanted_ || is_signalled; }

void Link::come(const std::string &reason) {
    if (!has_reason_) {
        reason_ = reason;
        has_reason_ = true;
    }
    is_wanted_ = true;
}

void Link::blame(const std::string &reason) {
    if (reason_.empty()) {
        reason_ = reason;
    }
    has_reason_ = true;
}

Value Link::next_request() {
    while (requests_.empty()) {
        wait_for(TICK_S, nullptr, true);
    }
    Value request = std::move(requests_.front());
    requests_.pop_front();
    served_ = request.at("id");
    return request;
}

bool Link::wait(double seconds, std::vector<pollfd> *others) { return wait_for(seconds, others, false); }

bool Link::wait_for(double seconds, std::vector<pollfd> *others, bool until_request) {
    double until = monotonic_s() + seconds;
    bool is_ready = false;
    do {
        std::vector<pollfd> polled = {{incoming_, POLLIN, 0}, {signal_pipe[0], POLLIN, 0}};
        if (others) {
            polled.insert(polled.end(), others->begin(), others->end());
        }
        double left_s = std::max(0.0, std::min(until - monotonic_s(), TICK_S));
        int n_ready = ::poll(polled.data(), static_cast<nfds_t>(polled.size()), static_cast<int>(left_s * 1000.0 + 0.999));
        if (n_ready > 0 && polled[0].revents != 0) {
            hear();
        } else if (monotonic_s() - heard_s_ > silence_limit_s_) {
            come("the desk has said nothing for " + number_text(silence_limit_s_) + " s");
        }
        if (is_over()) {
            throw Ended();
        }
        for (size_t at = 0; n_ready > 0 && others && at < others->size(); at++) {
            (*others)[at].revents = polled[at + 2].revents;
            is_ready = is_ready || polled[at + 2].revents != 0;
        }
    } while (!is_ready && !(until_request && !requests_.empty()) && monotonic_s() < until);
    return is_ready;
}

/* Takes what has come in. */
void Link::hear() {
    char chunk[65536];
    ssize_t n_bytes = ::read(incoming_, chunk, sizeof chunk);
    if (n_bytes < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    heard_s_ = monotonic_s();
    if (n_bytes <= 0) {
        come(std::string("the link ended") + (held_.empty() ? "" : " in the middle of a message"));
        return;
    }
    held_.append(chunk, static_cast<size_t>(n_bytes));
    size_t at = 0;
    while (!is_wanted_ && held_.size() - at >= FRAME_HEAD_BYTES) {
        size_t n_body = frame_body_bytes(std::string_view(held_).substr(at));
        if (n_body > FRAME_LIMIT_BYTES) {
            come("a message of " + std::to_string(n_body) + " bytes was announced (limit " +
                 std::to_string(FRAME_LIMIT_BYTES) + "): garbage");
            break;
        }
        if (held_.size() - at - FRAME_HEAD_BYTES < n_body) {
            break;
        }
        try {
            take(unpack(std::string_view(held_).substr(at + FRAME_HEAD_BYTES, n_body)));
        } catch (const std::exception &error) {
            come("a message cannot be read (" + std::string(error.what()) + "): garbage");
        }
        at += FRAME_HEAD_BYTES + n_body;
    }
    held_.erase(0, at);
}

void Link::take(Value message) {
    const Value *kind = message.is_map() ? message.find("kind") : nullptr;
    if (!kind || !kind->is_text()) {
        come("a message is one without a kind: garbage");
    } else if (kind->text() == "bye") {
        come("");
    } else if (kind->text() == "ping") {
        pong();
    } else if (const Value *arguments = message.find("arguments"); !arguments || !arguments->is_map() || !message.find("id")) {
        come("a message '" + kind->text() + "' has no arguments: garbage");
    } else if (requests_.size() >= MOST_REQUESTS) {
        come("too many requests at once: garbage");
    } else {
        requests_.push_back(std::move(message));
    }
}

/* Says that the agent is there, without waiting; after a message that is being written. */
void Link::pong() {
    owes_pong_ = is_writing_;
    pollfd ready = {outgoing_, POLLOUT, 0};
    if (!is_writing_ && !is_cut_ && ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT)) {
        Value message;
        message.set("kind", "pong");
        std::string frame = framed(pack(message));
        ssize_t ignored = ::write(outgoing_, frame.data(), frame.size());
        static_cast<void>(ignored);
    }
}

/* Writes all of a frame, in pieces that a pipe which is ready takes at once, and hears the desk meanwhile; false where
 * nobody reads any more, or a while after the end was wanted some of it was still not taken. */
bool Link::write(const std::string &frame) {
    if (is_cut_) {
        return false;
    }
    is_writing_ = is_cut_ = true;
    double until = 0.0;
    for (size_t at = 0; at < frame.size();) {
        pollfd polled[] = {{outgoing_, POLLOUT, 0}, {is_over() || is_deaf_ ? -1 : incoming_, POLLIN, 0}};
        ::poll(polled, 2, 100);
        if (polled[0].revents) {
            ssize_t n_bytes = ::write(outgoing_, &frame[at], std::min<size_t>(frame.size() - at, PIPE_BUF));
            if (n_bytes < 0 && errno != EINTR && errno != EAGAIN) {
                is_writing_ = false;
                is_wanted_ = true;
                return false;
            }
            at += n_bytes < 0 ? 0 : static_cast<size_t>(n_bytes);
        }
        if (polled[1].revents) {
            hear();
        } else if (!is_over() && monotonic_s() - heard_s_ > silence_limit_s_) {
            come("the desk has said nothing for " + number_text(silence_limit_s_) + " s");
        }
        if (!is_over() && !is_deaf_) {
            continue;
        }
        if (until == 0.0) {
            until = monotonic_s() + LAST_WORD_S;
        } else if (monotonic_s() > until && at < frame.size()) {
            is_writing_ = false;
            return false;
        }
    }
    is_writing_ = is_cut_ = false;
    if (owes_pong_) {
        pong();
    }
    return true;
}

void Link::say(const Value &message) {
    std::string body = pack(message);
    if (body.size() > FRAME_LIMIT_BYTES) {
        throw Failure(std::to_string(body.size()) + " bytes are too much for the link, which takes " +
                      std::to_string(FRAME_LIMIT_BYTES) + " at once; record less (fewer tokens, a recorder of coarser "
                      "events), or measure on the board itself");
    }
    if (!write(framed(body)) || is_over()) {
        throw Ended();
    }
}

void Link::answer(const Value &id, Value value) {
    Value message;
    message.set("kind", "answer");
    message.set("id", id);
    message.set("value", std::move(value));
    say(message);
}

void Link::answer(const Value &id, const Failure &failure) {
    Value error, message;
    error.set("class", failure.kind());
    error.set("text", failure.what());
    message.set("kind", "error");
    message.set("id", id);
    message.set("error", std::move(error));
    say(message);
}

void Link::refuse(Value versions) {
    Value message;
    message.set("kind", "refused");
    message.set("versions", std::move(versions));
    say(message);
}

void Link::note(const std::string &text) {
    Value message;
    message.set("kind", "note");
    message.set("text", text);
    say(message);
}

void Link::deliver(Value delivery) {
    Value message;
    message.set("kind", "live");
    message.set("id", served_);
    message.set("delivery", std::move(delivery));
    say(message);
}

void Link::say_ended(Value held) {
    is_deaf_ = true;
    Value message;
    message.set("kind", "ended");
    message.set("error", nullptr);
    message.set("held", std::move(held));
    write(framed(pack(message)));
}

} // namespace perfsuite
