/* Bytes within a line of text. */
#ifndef PERFSUITE_WORKER_BASE64_H
#define PERFSUITE_WORKER_BASE64_H

#include <string>
#include <string_view>

namespace perfsuite {

/* Source: RFC 4648, section 4. */
std::string to_base64(std::string_view bytes);

/* The bytes of a text; a `Failure` where it is none of base 64. */
std::string from_base64(std::string_view text);

} // namespace perfsuite

#endif
