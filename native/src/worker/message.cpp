#include "message.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace perfsuite {

namespace {

constexpr int MOST_DEPTH = 64;

struct Named {
    const char *operator()(const std::monostate &) const { return "nil"; }
    const char *operator()(bool) const { return "true or false"; }
    const char *operator()(int64_t) const { return "a whole number"; }
    const char *operator()(uint64_t) const { return "a whole number"; }
    const char *operator()(double) const { return "a number"; }
    const char *operator()(const std::string &) const { return "text"; }
    const char *operator()(const Bytes &) const { return "bytes"; }
    const char *operator()(const Value::List &) const { return "a list"; }
    const char *operator()(const Value::Map &) const { return "a map"; }
};

[[noreturn]] void refuse(const Value &value, const char *expected) {
    throw Failure(std::string("a message holds ") + value.visit(Named{}) + " in the place of " + expected);
}

/* The value as the type that is expected. */
template <typename Held> const Held &held_as(const Value &value, const char *expected) {
    const Held *found = value.visit([](const auto &each) -> const Held * {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, Held>) {
            return &each;
        } else {
            return nullptr;
        }
    });
    if (!found) {
        refuse(value, expected);
    }
    return *found;
}

} // namespace

bool Value::boolean() const { return held_as<bool>(*this, "true or false"); }

int64_t Value::whole() const {
    if (const auto *value = std::get_if<int64_t>(&held_)) {
        return *value;
    }
    const auto *value = std::get_if<uint64_t>(&held_);
    if (!value || *value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        refuse(*this, "a whole number below 2**63");
    }
    return static_cast<int64_t>(*value);
}

int32_t Value::whole32() const {
    int64_t value = whole();
    if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
        refuse(*this, "a whole number of 32 bits");
    }
    return static_cast<int32_t>(value);
}

double Value::number() const {
    if (const auto *value = std::get_if<double>(&held_)) {
        return *value;
    }
    return static_cast<double>(whole());
}

const std::string &Value::text() const { return held_as<std::string>(*this, "text"); }

const std::string &Value::bytes() const {
    return is_text() ? text() : held_as<Bytes>(*this, "bytes").content;
}

const Value::List &Value::list() const { return held_as<List>(*this, "a list"); }

const Value::Map &Value::map() const { return held_as<Map>(*this, "a map"); }

const Value &Value::at(std::string_view key) const {
    for (const auto &[name, value] : map()) {
        if (name == key) {
            return value;
        }
    }
    throw Failure("a message lacks '" + std::string(key) + "'");
}

const Value *Value::find(std::string_view key) const {
    for (const auto &[name, value] : map()) {
        if (name == key) {
            return value.is_nil() ? nullptr : &value;
        }
    }
    return nullptr;
}

Value &Value::set(std::string_view key, Value value) {
    if (is_nil()) {
        held_ = Map{};
    }
    Map &entries = const_cast<Map &>(map());
    for (auto &[name, old] : entries) {
        if (name == key) {
            return old = std::move(value);
        }
    }
    return entries.emplace_back(std::string(key), std::move(value)).second;
}

namespace {

class Packer {
  public:
    std::string out;

    void operator()(const std::monostate &) { byte(0xc0); }
    void operator()(bool value) { byte(value ? 0xc3 : 0xc2); }
    void operator()(int64_t value) {
        if (value >= 0) {
            (*this)(static_cast<uint64_t>(value));
        } else if (value >= -32) {
            byte(static_cast<uint8_t>(value));
        } else {
            byte(0xd3);
            big(static_cast<uint64_t>(value), 8);
        }
    }
    void operator()(uint64_t value) {
        if (value < 0x80) {
            byte(static_cast<uint8_t>(value));
        } else if (value <= 0xffffffff) {
            byte(0xce);
            big(value, 4);
        } else {
            byte(0xcf);
            big(value, 8);
        }
    }
    void operator()(double value) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        byte(0xcb);
        big(bits, 8);
    }
    void operator()(const std::string &text) {
        header(text.size(), 0xa0, 32, 0xda, 0xdb);
        out += text;
    }
    void operator()(const Bytes &bytes) {
        byte(0xc6);
        big(checked(bytes.content.size()), 4);
        out += bytes.content;
    }
    void operator()(const Value::List &list) {
        header(list.size(), 0x90, 16, 0xdc, 0xdd);
        for (const Value &value : list) {
            value.visit(*this);
        }
    }
    void operator()(const Value::Map &map) {
        header(map.size(), 0x80, 16, 0xde, 0xdf);
        for (const auto &[key, value] : map) {
            (*this)(key);
            value.visit(*this);
        }
    }

  private:
    void byte(uint8_t value) { out += static_cast<char>(value); }
    void big(uint64_t value, int n_bytes) {
        for (int shift = 8 * (n_bytes - 1); shift >= 0; shift -= 8) {
            byte(static_cast<uint8_t>(value >> shift));
        }
    }
    static uint64_t checked(size_t size) {
        if (size > 0xffffffff) {
            throw Failure("a message holds more than 4 GiB in one value; record less");
        }
        return size;
    }
    /* The length of a text, list or map: in the first byte where it is below `small`, else in two bytes or four. */
    void header(size_t size, uint8_t first, size_t small, uint8_t in_two, uint8_t in_four) {
        if (size < small) {
            byte(static_cast<uint8_t>(first | size));
        } else if (size <= 0xffff) {
            byte(in_two);
            big(size, 2);
        } else {
            byte(in_four);
            big(checked(size), 4);
        }
    }
};

class Unpacker {
  public:
    explicit Unpacker(std::string_view content) : left_(content) {}

    bool is_done() const { return left_.empty(); }

    Value value(int depth = 0) {
        if (depth > MOST_DEPTH) {
            throw Failure("a message nests more deeply than " + std::to_string(MOST_DEPTH) + " levels");
        }
        uint8_t first = static_cast<uint8_t>(taken(1)[0]);
        if (first < 0x80) {
            return static_cast<int64_t>(first);
        }
        if (first >= 0xe0) {
            return static_cast<int64_t>(static_cast<int8_t>(first));
        }
        if (first < 0x90) {
            return map(first & 0x0f, depth);
        }
        if (first < 0xa0) {
            return list(first & 0x0f, depth);
        }
        if (first < 0xc0) {
            return std::string(taken(first & 0x1f));
        }
        return longer(first, depth);
    }

  private:
    Value longer(uint8_t first, int depth) {
        switch (first) {
        case 0xc0:
            return nullptr;
        case 0xc2:
            return false;
        case 0xc3:
            return true;
        case 0xc4:
        case 0xc5:
        case 0xc6:
            return Bytes{std::string(taken(big(1 << (first - 0xc4))))};
        case 0xca:
            return static_cast<double>(real<float, uint32_t>());
        case 0xcb:
            return real<double, uint64_t>();
        case 0xcc:
        case 0xcd:
        case 0xce:
        case 0xcf:
            return big(1 << (first - 0xcc));
        case 0xd0:
        case 0xd1:
        case 0xd2:
        case 0xd3:
            return negative(1 << (first - 0xd0));
        case 0xd9:
        case 0xda:
        case 0xdb:
            return std::string(taken(big(1 << (first - 0xd9))));
        case 0xdc:
        case 0xdd:
            return list(big(2 << (first - 0xdc)), depth);
        case 0xde:
        case 0xdf:
            return map(big(2 << (first - 0xde)), depth);
        default:
            throw Failure("a message holds what is no value here (first byte " + std::to_string(first) + ")");
        }
    }

    Value list(uint64_t size, int depth) {
        Value::List values;
        for (uint64_t index = 0; index < size; index++) { /* never reserved: a size may be a lie */
            values.push_back(value(depth + 1));
        }
        return values;
    }

    Value map(uint64_t size, int depth) {
        Value::Map entries;
        for (uint64_t index = 0; index < size; index++) {
            Value key = value(depth + 1);
            entries.emplace_back(key.text(), value(depth + 1));
        }
        return entries;
    }

    template <typename Real, typename Bits> Real real() {
        Bits bits = static_cast<Bits>(big(sizeof(Bits)));
        Real value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

    int64_t negative(int n_bytes) {
        uint64_t bits = big(n_bytes);
        int unused = 64 - 8 * n_bytes;
        return static_cast<int64_t>(bits << unused) >> unused;
    }

    uint64_t big(int n_bytes) {
        uint64_t value = 0;
        for (char each : taken(static_cast<uint64_t>(n_bytes))) {
            value = value << 8 | static_cast<uint8_t>(each);
        }
        return value;
    }

    std::string_view taken(uint64_t n_bytes) {
        if (n_bytes > left_.size()) {
            throw Failure("a message is cut short");
        }
        std::string_view found = left_.substr(0, n_bytes);
        left_.remove_prefix(n_bytes);
        return found;
    }

    std::string_view left_;
};

} // namespace

std::string pack(const Value &value) {
    Packer packer;
    value.visit(packer);
    return std::move(packer.out);
}

Value unpack(std::string_view content) {
    Unpacker unpacker(content);
    Value value = unpacker.value();
    if (!unpacker.is_done()) {
        throw Failure("a message goes on after its end");
    }
    return value;
}

} // namespace perfsuite
