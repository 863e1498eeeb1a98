/* The device's lock: the same files as those of the suite in Python (perfsuite/device/lock), so that whoever runs on a
 * device excludes the others. */
#ifndef PERFSUITE_AGENT_LOCK_H
#define PERFSUITE_AGENT_LOCK_H

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "../worker/message.h"

namespace perfsuite {

/* Who wants the device; as `Claim` of perfsuite/measure/board/holding.py. */
struct Claim {
    std::string name, user, host, run_id, purpose;
    double wait_s = 0.0;
    /* "" is the machine's own place. */
    std::string lock_folder;

    static Claim from_value(const Value &value);
};

class HeldLock {
  public:
    HeldLock() = default;
    HeldLock(const HeldLock &) = delete;
    HeldLock &operator=(const HeldLock &) = delete;
    ~HeldLock() { give_back(); }

    /* What a user should know of how it was come by. */
    std::vector<std::string> notes;
    /* Whether somebody has broken it meanwhile. */
    bool is_lost = false;

    /* Takes the lock, or waits for whoever has it.  `tell` hears once for whom; `wait` waits for so many seconds, and
     * may throw.  Raises a `Failure` of the kind LockedError or DeviceError. */
    void take(const Claim &claim, const std::string &state_folder, const std::function<void(const std::string &)> &tell,
              const std::function<void(double)> &wait);

    /* Whether another process of the same run has it, so that it is not given back here. */
    bool is_nested() const { return is_shared_; }

    /* Notes that the holder is alive, where the last time is long enough ago, and looks whether it still has it. */
    void beat();

    void give_back();

  private:
    bool is_placed(const std::string &folder, const std::string &owner);
    void let_go();

    std::string folder_;
    int handle_ = -1, beat_handle_ = -1;
    bool is_shared_ = false;
    std::string shared_owner_;
    double beaten_s_ = 0.0;
};

/* The lock of the device, as `LockState` of perfsuite/device/lock/state.py says it; nil where nobody has it.  A `Failure`
 * where what has its name is no lock.  `folder` is "" for the machine's own place. */
Value lock_state(const std::string &folder);

/* Breaks it, and returns what it was.  A `Failure` where its holder runs and `is_forced` does not say to break it
 * nevertheless, or it belongs to another account. */
Value broken_lock(const std::string &folder, bool is_forced);

/* Ends the process that holds the lock for this very run, and waits until it has: it is asked first, so that it restores
 * what it has set, and killed when it does not. */
void end_predecessor(const Claim &claim, const std::function<void(double)> &wait);

} // namespace perfsuite

#endif
