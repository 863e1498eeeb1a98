#include "companions.h"

#include "live_feed.h"
#include "memory_group.h"
#include "memory_looks.h"

namespace perfsuite {

Companions companions(const Value &asked, const Value &environment, const std::string &root, Link &link) {
    Companions found;
    if (const Value *memory = asked.find("memory")) {
        found.push_back(std::make_unique<MemoryLooks>(*memory));
    }
    if (const Value *limit = asked.find("limit")) {
        found.push_back(std::make_unique<MemoryGroup>(*limit, root));
    }
    if (asked.find("live")) {
        found.push_back(std::make_unique<LiveFeed>(environment, link));
    }
    return found;
}

} // namespace perfsuite
