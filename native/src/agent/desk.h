/* The desk's end of a link to a process that serves, within one device. */
#ifndef PERFSUITE_AGENT_DESK_H
#define PERFSUITE_AGENT_DESK_H

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "../worker/message.h"

namespace perfsuite {

/* A process that serves; it has ended, and restored the device, when its desk is gone. */
class Desk {
  public:
    /* Starts `command`. */
    explicit Desk(std::vector<std::string> command);
    Desk(const Desk &) = delete;
    Desk &operator=(const Desk &) = delete;
    ~Desk();

    /* Asks for something: the message that answers, or refuses; none where the process ends or is silent for so long. */
    std::optional<Value> ask(const Value &request, double limit_s);

    /* Says goodbye; what the process had to say of the device, none where it said nothing. */
    std::optional<Value> end(double limit_s);

  private:
    bool send(const Value &message);
    std::optional<Value> received(double until_s);

    pid_t pid_ = -1;
    int input_ = -1, output_ = -1, n_asked_ = 0;
    bool has_begun_ = false;
    std::string held_;
};

} // namespace perfsuite

#endif
