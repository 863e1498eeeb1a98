#include "live_feed.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "processes.h"

namespace perfsuite {

namespace {

/* Phases that fit between two looks, more than a hundred tokens, and what lies before them; most that one look takes. */
constexpr size_t CAPACITY = 1024, HEAD_BYTES = 4096, AT_ONCE = 256;

/* Wake-ups that follow each other faster wait for so long first; longest wait for one. */
constexpr double LEAST_INTERVAL_S = 0.002, WAIT_S = 1.0;

/* Most of the log that is handed over at once while the worker runs, and at its end. */
constexpr size_t LOG_BYTES = size_t{1} << 20, LAST_LOG_BYTES = size_t{64} << 20;

} // namespace

LiveFeed::LiveFeed(const Value &environment, Link &link) : link_(link), since_ns_(monotonic_ns()) {
    if (const Value *folder = environment.find("PERFSUITE_OPENCL_LOG")) {
        log_folder_ = folder->text();
    }
    memory_fd_ = ::memfd_create("perfsuite-live", MFD_CLOEXEC);
    event_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (memory_fd_ >= 0 && ::ftruncate(memory_fd_, HEAD_BYTES + CAPACITY * sizeof(ps_span)) == 0) {
        queue_ = ::ps_live_map(memory_fd_);
    }
    if (!queue_ || event_fd_ < 0) {
        std::string why = system_text();
        ::close(memory_fd_);
        ::close(event_fd_);
        throw Failure("the live queue cannot be opened (" + why + ")");
    }
}

LiveFeed::~LiveFeed() {
    ::ps_live_unmap(queue_);
    ::close(memory_fd_);
    ::close(event_fd_);
}

std::vector<std::string> LiveFeed::options() const {
    return {"--live-memory=" + std::to_string(memory_fd_), "--live-event=" + std::to_string(event_fd_)};
}

void LiveFeed::in_child() const {
    ::fcntl(memory_fd_, F_SETFD, 0);
    ::fcntl(event_fd_, F_SETFD, 0);
}

void LiveFeed::started(pid_t pid) {
    log_path_ = log_folder_.empty() ? "" : log_folder_ + "/opencl-" + std::to_string(pid) + ".log";
    due_s_ = monotonic_s();
}

void LiveFeed::take_due() {
    uint64_t count = 0;
    bool is_woken = ::read(event_fd_, &count, sizeof count) == static_cast<ssize_t>(sizeof count);
    double now_s = monotonic_s();
    if (is_woken && now_s - taken_s_ < LEAST_INTERVAL_S) {
        due_s_ = taken_s_ + LEAST_INTERVAL_S; /* fast tokens share a wake-up */
        return;
    }
    if (!is_woken && now_s < due_s_) {
        return;
    }
    forward(LOG_BYTES);
    taken_s_ = monotonic_s();
    due_s_ = ::ps_live_arm(queue_) ? taken_s_ + LEAST_INTERVAL_S : taken_s_ + WAIT_S;
}

void LiveFeed::forward(size_t most_log_bytes) {
    std::string spans;
    ps_span taken[AT_ONCE];
    for (size_t n_taken = AT_ONCE; n_taken == AT_ONCE;) {
        n_taken = static_cast<size_t>(::ps_live_take(queue_, taken, AT_ONCE));
        spans.append(reinterpret_cast<const char *>(taken), n_taken * sizeof(ps_span));
    }
    unsigned long long n_dropped = ::ps_live_dropped(queue_);
    std::string log = log_piece(most_log_bytes);
    if (spans.empty() && log.empty() && n_dropped == n_dropped_) {
        return;
    }
    Value delivery;
    delivery.set("at_ns", monotonic_ns());
    delivery.set("since_ns", since_ns_);
    delivery.set("spans", Bytes{std::move(spans)});
    delivery.set("n_dropped", n_dropped - n_dropped_);
    delivery.set("resumed_ns", static_cast<long long>(::ps_live_resumed_ns(queue_)));
    delivery.set("log", Bytes{std::move(log)});
    n_dropped_ = n_dropped;
    link_.deliver(std::move(delivery));
}

std::string LiveFeed::log_piece(size_t most_bytes) {
    int handle = log_path_.empty() ? -1 : ::open(log_path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle < 0) {
        return "";
    }
    off_t end = ::lseek(handle, 0, SEEK_END);
    std::string piece(static_cast<size_t>(std::clamp<long long>(end - log_at_, 0, static_cast<long long>(most_bytes))), '\0');
    ssize_t n_bytes = piece.empty() ? 0 : ::pread(handle, piece.data(), piece.size(), log_at_);
    ::close(handle);
    piece.resize(n_bytes > 0 ? static_cast<size_t>(n_bytes) : 0);
    log_at_ += static_cast<long long>(piece.size());
    return piece;
}

void LiveFeed::tell(Value &outcome) {
    forward(LAST_LOG_BYTES);
    outcome.set("ended_ns", monotonic_ns());
}

} // namespace perfsuite
