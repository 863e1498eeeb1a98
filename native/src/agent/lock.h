/* The device's lock: a file that whoever measures has locked (flock), so that one run at a time has the device.
 *
 * The kernel frees the lock with the process, whatever ended that, and in whatever container it was.  The file says who has
 * the device; it stays, and is empty where a run ended in order: else the next one restores what that run had changed.  All
 * accounts share it, in a folder that everybody may write to: no link is followed, and what it says is a claim of anybody's.
 * So nothing is restored from a folder, and no process is ended, on its word alone. */
#ifndef PERFSUITE_AGENT_LOCK_H
#define PERFSUITE_AGENT_LOCK_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../worker/message.h"

namespace perfsuite {

/* Who wants the device; as `Claim` of perfsuite/measure/board/holding.py. */
struct Claim {
    std::string name, user, host, run_id, purpose;
    double wait_s = 0.0;
    /* Whether processes of one run share the lock: one that a run has started does not wait for that. */
    bool is_shared = false;
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

    /* What a user should know of how it was come by; and where runs that were killed have kept what is to be restored. */
    std::vector<std::string> notes, left_folders;

    /* Takes the lock, or waits for whoever has it.  `tell` hears once for whom; `wait` waits for so many seconds, and
     * may throw.  Raises a `Failure` of the kind LockedError or DeviceError. */
    void take(const Claim &claim, const std::string &state_folder, const std::function<void(const std::string &)> &tell,
              const std::function<void(double)> &wait);

    /* Whether somebody else may have had the device: the file was removed, or the process that shares it has ended. */
    bool is_lost() const;

    /* Whether another process of this run has it, and gives it back. */
    bool is_shared() const { return !shared_.is_nil(); }

    void give_back();

  private:
    bool is_taken(const std::vector<std::string> &paths);
    void name_owner(const Claim &claim, const std::string &state_folder);
    void let_go();

    std::vector<std::pair<int, std::string>> files_;
    bool was_lost_ = false;
    Value shared_;
    std::string lock_folder_;
};

/* Who has the device, as `LockOwner` of perfsuite/device/lock_owner.py; nil where nobody has it.  `folder` is "" for the
 * machine's own place. */
Value lock_holder(const std::string &folder);

/* Who that is, in words. */
std::string owner_text(const Value &owner);

/* Ends the process that has the lock, and waits until it has: it is asked first, so that it restores what it has set.
 * A `Failure` where it is not one of this account's that has the lock's file open, or does not end. */
void end_holder(const Value &owner, const std::string &folder, const std::function<void(double)> &wait);

} // namespace perfsuite

#endif
