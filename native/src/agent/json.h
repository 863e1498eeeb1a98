/* JSON, for the two files that a board keeps in it: who has its lock, and what is to be restored. */
#ifndef PERFSUITE_AGENT_JSON_H
#define PERFSUITE_AGENT_JSON_H

#include <optional>
#include <string>
#include <string_view>

#include "../worker/message.h"

namespace perfsuite {

/* The value that fills a text; none for anything else, whoever wrote it. */
std::optional<Value> parse_json(std::string_view text);

/* In ASCII, as Python's json writes it. */
std::string json_text(const Value &value);

/* A text as it may be told on one line: what a terminal obeys, and what is no UTF-8, becomes '?'. */
std::string printable(std::string_view text);

} // namespace perfsuite

#endif
