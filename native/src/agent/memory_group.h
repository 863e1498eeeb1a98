/* A control group for one worker, with a limit on its memory; which files have the limit is the desk's to know. */
#ifndef PERFSUITE_AGENT_MEMORY_GROUP_H
#define PERFSUITE_AGENT_MEMORY_GROUP_H

#include <string>
#include <vector>

#include "companions.h"

namespace perfsuite {

class MemoryGroup : public Companion {
  public:
    /* Of a request: `parents` (folders, the first that is there counts), `limits` ([file, text, whether it must be
     * taken]), `reads` (files), `drops` (a file that leaves the page cache) or nil.
     *
     * Makes the group; a Failure where none can be made, or a limit is not taken. */
    MemoryGroup(const Value &asked, const std::string &root);
    /* Sends what is left back to the group above, and removes this one. */
    ~MemoryGroup() override;

    /* Puts the worker into the group from its first page on. */
    void in_child() const override;

    /* `limit`: [file, content or nil] of what was to be read. */
    void tell(Value &outcome) override;

  private:
    void limit(const Value &file);

    std::string parent_, path_;
    std::vector<std::string> reads_;
};

} // namespace perfsuite

#endif
