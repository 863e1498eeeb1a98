/* Looks at the kernel's small files while something runs: raw, for the desk makes samples of them. */
#ifndef PERFSUITE_AGENT_LOOKS_H
#define PERFSUITE_AGENT_LOOKS_H

#include <string>
#include <vector>

#include "../worker/message.h"

namespace perfsuite {

/* As perfsuite/device/stability/sampler.py reads them: the power's files at every look, of each group of sources all at
 * the first and the last look, and in turns a few files between. */
class Looks {
  public:
    /* Of a request: `period_s`, `most_reads`, `most_looks`, `power` (paths), `groups` (of sources, each of them paths).
     * A path with a '*' stands for all that match it, each a source of its own. */
    Looks(const Value &asked, std::string root);

    void take_all();
    /* Takes a look where one is due. */
    void take_due();

    /* When the next is due, s of CLOCK_MONOTONIC. */
    double due_s() const { return due_s_; }

    Value::List taken() const { return taken_; }

  private:
    using Source = std::vector<std::string>;
    struct Group {
        std::vector<Source> sources;
        size_t next = 0;
    };

    void read(const Source &source, Value::List &reads) const;
    void finish(Value::List reads);

    std::string root_;
    double period_s_, due_s_;
    size_t most_reads_, most_looks_;
    Source power_;
    std::vector<Group> groups_;
    Value::List taken_;
};

} // namespace perfsuite

#endif
