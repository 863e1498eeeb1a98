/* Looks at a worker's memory while it runs: lines of /proc/PID/status, and what DRM drivers say of its open devices. */
#ifndef PERFSUITE_AGENT_MEMORY_LOOKS_H
#define PERFSUITE_AGENT_MEMORY_LOOKS_H

#include <string>
#include <vector>

#include "companions.h"

namespace perfsuite {

class MemoryLooks : public Companion {
  public:
    /* Of a request: `period_s` and `fields` (of status), `device_period_s` or nil. */
    explicit MemoryLooks(const Value &asked);

    void started(pid_t pid) override;
    double due_s() const override { return status_due_s_ < devices_due_s_ ? status_due_s_ : devices_due_s_; }
    void take_due() override;

    /* `memory`: `status`, looks of [ns, the lines]; `devices`, each [name, content] of the device files that it had open,
     * as often as they changed; and `refusal`, why these cannot be read, or nil. */
    void tell(Value &outcome) override;

  private:
    void look_at_status();
    void look_at_devices();

    std::vector<std::string> fields_;
    double period_s_, device_period_s_ = 0.0, status_due_s_ = NEVER_S, devices_due_s_ = NEVER_S;
    bool asks_devices_;
    std::string folder_;
    Value::List status_, devices_;
    std::string last_devices_;
    Value refusal_;
};

} // namespace perfsuite

#endif
