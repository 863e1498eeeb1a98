#include "json.h"

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "../worker/text.h"

namespace perfsuite {

namespace {

constexpr int MOST_DEPTH = 32;

/* The bytes of the character that begins a text, 0 where it is no UTF-8; its number in `code`. */
size_t character(std::string_view text, uint32_t &code) {
    auto byte = [&](size_t at) { return static_cast<uint8_t>(text[at]); };
    uint8_t first = byte(0);
    size_t n_bytes = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
    if (n_bytes == 0 || n_bytes > text.size()) {
        return 0;
    }
    code = n_bytes == 1 ? first : first & (0x7f >> n_bytes);
    for (size_t at = 1; at < n_bytes; at++) {
        if (byte(at) >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (byte(at) & 0x3f);
    }
    constexpr uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    bool is_one = code >= LEAST[n_bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return is_one ? n_bytes : 0;
}

void append_utf8(std::string &out, uint32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
        return;
    }
    int n_more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr uint32_t LEADING[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(LEADING[n_more] | code >> (6 * n_more));
    while (n_more-- > 0) {
        out += static_cast<char>(0x80 | (code >> (6 * n_more) & 0x3f));
    }
}

class Parser {
  public:
    explicit Parser(std::string_view text) : left_(text) {}

    Value whole() {
        Value value = parsed(0);
        skip();
        if (!left_.empty()) {
            fail();
        }
        return value;
    }

  private:
    [[noreturn]] static void fail() { throw Failure("is no JSON"); }

    void skip() {
        while (!left_.empty() && std::string_view(" \t\r\n").find(left_[0]) != std::string_view::npos) {
            left_.remove_prefix(1);
        }
    }

    char next() {
        skip();
        return left_.empty() ? '\0' : left_[0];
    }

    bool took(std::string_view word) {
        skip();
        if (left_.substr(0, word.size()) != word) {
            return false;
        }
        left_.remove_prefix(word.size());
        return true;
    }

    Value parsed(int depth) {
        if (depth > MOST_DEPTH) {
            fail();
        }
        switch (next()) {
        case '{':
            return map(depth);
        case '[':
            return list(depth);
        case '"':
            return text();
        default:
            return took("null") ? Value() : took("true") ? Value(true) : took("false") ? Value(false) : number();
        }
    }

    Value map(int depth) {
        Value::Map entries;
        left_.remove_prefix(1);
        for (bool is_first = true; !took("}"); is_first = false) {
            if ((!is_first && !took(",")) || next() != '"') {
                fail();
            }
            std::string key = text();
            if (!took(":")) {
                fail();
            }
            entries.emplace_back(std::move(key), parsed(depth + 1));
        }
        return entries;
    }

    Value list(int depth) {
        Value::List values;
        left_.remove_prefix(1);
        for (bool is_first = true; !took("]"); is_first = false) {
            if (!is_first && !took(",")) {
                fail();
            }
            values.push_back(parsed(depth + 1));
        }
        return values;
    }

    std::string text() {
        std::string out;
        for (left_.remove_prefix(1); !left_.empty() && left_[0] != '"';) {
            if (left_[0] == '\\') {
                escaped(out);
                continue;
            }
            uint32_t code = 0;
            size_t n_bytes = character(left_, code);
            if (n_bytes == 0 || code < 0x20) {
                fail();
            }
            out += left_.substr(0, n_bytes);
            left_.remove_prefix(n_bytes);
        }
        if (left_.empty()) {
            fail();
        }
        left_.remove_prefix(1);
        return out;
    }

    void escaped(std::string &out) {
        constexpr std::string_view LETTERS = "\"\\/bfnrt", MEANT = "\"\\/\b\f\n\r\t";
        if (left_.size() < 2) {
            fail();
        }
        size_t at = LETTERS.find(left_[1]);
        if (at != std::string_view::npos) {
            left_.remove_prefix(2);
            out += MEANT[at];
            return;
        }
        uint32_t code = unit();
        if (code >= 0xd800 && code < 0xdc00 && left_.substr(0, 2) == "\\u") {
            uint32_t low = unit();
            code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
        }
        append_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    }

    uint32_t unit() {
        if (left_.size() < 6 || left_.substr(0, 2) != "\\u") {
            fail();
        }
        uint32_t code = 0;
        for (char each : left_.substr(2, 4)) {
            size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(each | 0x20));
            if (digit == std::string_view::npos) {
                fail();
            }
            code = code << 4 | static_cast<uint32_t>(digit);
        }
        left_.remove_prefix(6);
        return code;
    }

    Value number() {
        size_t end = left_.find_first_not_of("+-.0123456789eE");
        std::string word(left_.substr(0, end));
        left_.remove_prefix(word.size());
        if (std::optional<long long> whole = number_in(word)) {
            return *whole;
        }
        char *stopped = nullptr;
        double value = std::strtod(word.c_str(), &stopped);
        if (word.empty() || *stopped != '\0') {
            fail();
        }
        return value;
    }

    std::string_view left_;
};

struct Writer {
    std::string out;

    void operator()(const std::monostate &) { out += "null"; }
    void operator()(bool value) { out += value ? "true" : "false"; }
    void operator()(int64_t value) { out += std::to_string(value); }
    void operator()(uint64_t value) { out += std::to_string(value); }
    void operator()(double value) {
        char text[40];
        std::snprintf(text, sizeof text, "%.17g", value);
        out += text;
    }
    void operator()(const Bytes &bytes) { (*this)(bytes.content); }
    void operator()(const std::string &text) {
        out += '"';
        for (std::string_view left = text; !left.empty();) {
            uint32_t code = 0;
            size_t n_bytes = character(left, code);
            if (n_bytes == 1 && code >= 0x20 && code != '"' && code != '\\' && code != 0x7f) {
                out += left[0];
            } else {
                unit(n_bytes == 0 ? 0xfffd : code);
            }
            left.remove_prefix(n_bytes == 0 ? 1 : n_bytes);
        }
        out += '"';
    }
    void operator()(const Value::List &list) {
        out += '[';
        for (size_t at = 0; at < list.size(); at++) {
            out += at ? ", " : "";
            list[at].visit(*this);
        }
        out += ']';
    }
    void operator()(const Value::Map &map) {
        out += '{';
        for (size_t at = 0; at < map.size(); at++) {
            out += at ? ", " : "";
            (*this)(map[at].first);
            out += ": ";
            map[at].second.visit(*this);
        }
        out += '}';
    }

  private:
    void unit(uint32_t code) {
        if (code >= 0x10000) {
            unit(0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        char text[8];
        std::snprintf(text, sizeof text, "\\u%04x", code);
        out += text;
    }
};

} // namespace

std::optional<Value> parse_json(std::string_view text) {
    try {
        return Parser(text).whole();
    } catch (const Failure &) {
        return std::nullopt;
    }
}

std::string json_text(const Value &value) {
    Writer writer;
    value.visit(writer);
    return std::move(writer.out);
}

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        uint32_t code = 0;
        size_t n_bytes = character(text, code);
        bool is_plain = n_bytes > 0 && code >= 0x20 && (code < 0x7f || code > 0xa0) && (code < 0x200b || code > 0x202e);
        out += is_plain ? text.substr(0, n_bytes) : std::string_view("?");
        text.remove_prefix(n_bytes == 0 ? 1 : n_bytes);
    }
    return out;
}

} // namespace perfsuite
