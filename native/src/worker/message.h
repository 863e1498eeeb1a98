/* MessagePack: the values of which plans, records and the messages between a desk and a board are made.
 *
 * Source: https://github.com/msgpack/msgpack/blob/master/spec.md, without extension types.
 */
#ifndef PERFSUITE_MESSAGE_H
#define PERFSUITE_MESSAGE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "failure.h"

namespace perfsuite {

/* Bytes, where a plain string is text. */
struct Bytes {
    std::string content;
};

/* One value.  Asking for what it is not raises a `Failure` that names what was expected. */
class Value {
  public:
    using List = std::vector<Value>;
    /* Keys are texts, in the order in which they were set. */
    using Map = std::vector<std::pair<std::string, Value>>;

    Value() = default; /* nil */
    Value(std::nullptr_t) {}
    Value(bool value) : held_(value) {}
    Value(int value) : held_(static_cast<int64_t>(value)) {}
    Value(long value) : held_(static_cast<int64_t>(value)) {}
    Value(long long value) : held_(static_cast<int64_t>(value)) {}
    Value(unsigned value) : held_(static_cast<uint64_t>(value)) {}
    Value(unsigned long value) : held_(static_cast<uint64_t>(value)) {}
    Value(unsigned long long value) : held_(static_cast<uint64_t>(value)) {}
    Value(double value) : held_(value) {}
    Value(const char *text) : held_(std::string(text)) {}
    template <typename Other> Value(Other *) = delete; /* it would be true */
    Value(std::string text) : held_(std::move(text)) {}
    Value(std::string_view text) : held_(std::string(text)) {}
    Value(Bytes bytes) : held_(std::move(bytes)) {}
    Value(List list) : held_(std::move(list)) {}
    Value(Map map) : held_(std::move(map)) {}

    bool is_nil() const { return std::holds_alternative<std::monostate>(held_); }
    bool is_text() const { return std::holds_alternative<std::string>(held_); }
    bool is_map() const { return std::holds_alternative<Map>(held_); }
    bool is_list() const { return std::holds_alternative<List>(held_); }

    bool boolean() const;
    /* A whole number, of either form, that fits. */
    int64_t whole() const;
    int32_t whole32() const;
    /* A number, whole or not. */
    double number() const;
    const std::string &text() const;
    /* The content of bytes, or of a text. */
    const std::string &bytes() const;
    const List &list() const;
    const Map &map() const;

    /* A map's value; a `Failure` names a key that is not there. */
    const Value &at(std::string_view key) const;
    /* The same, or NULL where it is not there, or is nil. */
    const Value *find(std::string_view key) const;
    /* Sets a key of a map (a nil becomes one), in place of one that is there. */
    Value &set(std::string_view key, Value value);

    template <typename Visitor> auto visit(Visitor &&visitor) const {
        return std::visit(std::forward<Visitor>(visitor), held_);
    }

  private:
    std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Bytes, List, Map> held_;
};

std::string pack(const Value &value);

/* Reads one value that fills the content; a `Failure` where it is cut, goes on, nests too deeply, has a key that is no
 * text, or an extension type. */
Value unpack(std::string_view content);

} // namespace perfsuite

#endif
