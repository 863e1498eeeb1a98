/* The link to the desk: frames of MessagePack on two descriptors, signs of life, and the end that any of them brings.
 *
 * One thread does all.  Whatever takes long calls `wait` now and then, which answers the desk's pings, and throws `Ended`
 * when somebody wants the end. */
#ifndef PERFSUITE_AGENT_LINK_H
#define PERFSUITE_AGENT_LINK_H

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "../worker/message.h"

namespace perfsuite {

/* What the agent writes before its first message: whatever a login prints first is passed over. */
constexpr std::string_view PREAMBLE = "\nperfsuite-agent\n";

/* A message's body behind its length, and the length that such a head of so many bytes tells. */
constexpr size_t FRAME_HEAD_BYTES = 4;
std::string framed(const std::string &body);
size_t frame_body_bytes(std::string_view frame);

/* Ends whatever the agent is at; no `std::exception`, for nobody may take it for one of a measurement. */
struct Ended {};

class Link {
  public:
    Link(int incoming, int outgoing) : incoming_(incoming), outgoing_(outgoing) {}

    /* Lets signals end what is waited for, and says that the agent is there. */
    void begin();

    /* The desk counts as gone after so much silence. */
    void set_silence_limit_s(double limit_s) { silence_limit_s_ = limit_s; }

    /* The next request: its kind, id and arguments. */
    Value next_request();

    /* Waits so many seconds at most, or until one of `others` is ready; whether one is. */
    bool wait(double seconds, std::vector<pollfd> *others = nullptr);

    /* Looks whether the end is wanted, without waiting; often called where much is read or written. */
    void look() { wait(0.0); }

    void answer(const Value &id, Value value);
    void answer(const Value &id, const Failure &failure);
    void refuse(Value versions);
    void note(const std::string &text);
    /* Says something of the request that is being served, before its answer. */
    void deliver(Value delivery);

    /* Says the last word, with nothing breaking in, where the desk can still understand it. */
    void say_ended(Value held);

    /* Why it ends, "" for a desk that has had enough, and for a signal. */
    const std::string &reason() const { return reason_; }
    void blame(const std::string &reason);

  private:
    bool wait_for(double seconds, std::vector<pollfd> *others, bool until_request);
    void say(const Value &message);
    bool write(const std::string &frame);
    void hear();
    void take(Value message);
    void come(const std::string &reason);
    void pong();
    bool is_over() const;

    int incoming_, outgoing_;
    double silence_limit_s_ = 60.0, heard_s_ = 0.0;
    std::string held_;
    std::deque<Value> requests_;
    Value served_;
    std::string reason_;
    bool has_reason_ = false, is_wanted_ = false, is_writing_ = false, is_cut_ = false, is_deaf_ = false, owes_pong_ = false;
};

} // namespace perfsuite

#endif
