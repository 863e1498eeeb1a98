/* What is done to a worker, and seen of it, by the agent beside it.
 *
 * The agent reads and writes; what it reads goes to the desk as it is, which computes what that means. */
#ifndef PERFSUITE_AGENT_COMPANIONS_H
#define PERFSUITE_AGENT_COMPANIONS_H

#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "../worker/message.h"
#include "link.h"

namespace perfsuite {

/* Never, s of CLOCK_MONOTONIC. */
constexpr double NEVER_S = 1e18;

/* One thing that goes on beside one worker. */
class Companion {
  public:
    Companion() = default;
    Companion(const Companion &) = delete;
    Companion &operator=(const Companion &) = delete;
    virtual ~Companion() = default;

    /* Words that the worker is started with, too. */
    virtual std::vector<std::string> options() const { return {}; }
    /* In the worker's process, before it becomes the program. */
    virtual void in_child() const {}
    virtual void started(pid_t) {}

    /* What wakes the agent for it, -1 for nothing; and when it is due in any case, s of CLOCK_MONOTONIC. */
    virtual int descriptor() const { return -1; }
    virtual double due_s() const { return NEVER_S; }
    /* Does what is due, if anything is; called after each wait. */
    virtual void take_due() {}

    /* After the worker has ended: adds what was seen to its outcome. */
    virtual void tell(Value &) {}
};

using Companions = std::vector<std::unique_ptr<Companion>>;

/* Those that a request names: `memory` (a `MemoryLooks`), `limit` (a `MemoryGroup`) and `live` (a `LiveFeed`), each nil
 * or left out where it is not asked for.  `environment` is the worker's; `root` is "" but for a tree of stand-ins. */
Companions companions(const Value &asked, const Value &environment, const std::string &root, Link &link);

} // namespace perfsuite

#endif
