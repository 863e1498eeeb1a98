/* Live records of a worker: phases that its driver pushes into memory which it shares with the agent, and the OpenCL
 * layer's log as it grows.  The agent hands both over the link as they are; the desk makes records of them.
 *
 * What costs a run is not the bytes but the wake-ups: where every processor computes, each takes one away from a thread for
 * whose end the others wait.  So the agent sleeps until the driver wakes it by an eventfd, once a token, when the decode step
 * ends: copy, softmax and sampling follow, which run on the driver's thread alone, and whose records travel with the next
 * token.  Where each of the engine's threads is bound to a processor, the agent keeps off the driver's. */
#ifndef PERFSUITE_AGENT_LIVE_FEED_H
#define PERFSUITE_AGENT_LIVE_FEED_H

#include <string>
#include <vector>

#include "companions.h"
#include "perfsuite/live.h"

namespace perfsuite {

class LiveFeed : public Companion {
  public:
    /* Makes a queue; `environment` is the worker's, and may name the folder of the OpenCL layer's log. */
    LiveFeed(const Value &environment, Link &link);
    ~LiveFeed() override;

    std::vector<std::string> options() const override;
    void in_child() const override;
    void started(pid_t pid) override;
    int descriptor() const override { return event_fd_; }
    double due_s() const override { return due_s_; }
    void take_due() override;

    /* Hands over what is left. */
    void tell(Value &outcome) override;

  private:
    void forward(size_t most_log_bytes);
    std::string log_piece(size_t most_bytes);

    Link &link_;
    std::string log_folder_, log_path_;
    long long since_ns_, log_at_ = 0;
    int memory_fd_ = -1, event_fd_ = -1;
    ps_live_queue *queue_ = nullptr;
    unsigned long long n_dropped_ = 0;
    double due_s_ = NEVER_S, taken_s_ = 0.0;
};

} // namespace perfsuite

#endif
