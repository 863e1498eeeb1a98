/* Processes that only keep processors busy, for as long as a desk wants to see what that does. */
#ifndef PERFSUITE_AGENT_LOAD_H
#define PERFSUITE_AGENT_LOAD_H

#include <vector>

#include <sys/types.h>

namespace perfsuite {

/* Those that run now; none of them outlives this process. */
class BusyLoops {
  public:
    BusyLoops() = default;
    BusyLoops(const BusyLoops &) = delete;
    BusyLoops &operator=(const BusyLoops &) = delete;
    ~BusyLoops() { end(); }

    /* Ends those that run, and starts so many; a Failure where the device lets no more be started. */
    void set(long long n_processes);

  private:
    void end();

    std::vector<pid_t> processes_;
};

} // namespace perfsuite

#endif
