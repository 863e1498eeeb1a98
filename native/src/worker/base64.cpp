#include "base64.h"

#include <array>
#include <cstdint>

#include "failure.h"

namespace perfsuite {

namespace {

constexpr std::string_view DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int8_t NONE = -1;

std::array<int8_t, 256> values_of_digits() {
    std::array<int8_t, 256> values;
    values.fill(NONE);
    for (size_t value = 0; value < DIGITS.size(); value++) {
        values[static_cast<unsigned char>(DIGITS[value])] = static_cast<int8_t>(value);
    }
    return values;
}

} // namespace

std::string to_base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t at = 0; at < bytes.size(); at += 3) {
        size_t n_left = bytes.size() - at;
        auto byte = [&](size_t place) { return place < n_left ? static_cast<unsigned char>(bytes[at + place]) : 0u; };
        unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
        text += DIGITS[group >> 18];
        text += DIGITS[group >> 12 & 63];
        text += n_left > 1 ? DIGITS[group >> 6 & 63] : '=';
        text += n_left > 2 ? DIGITS[group & 63] : '=';
    }
    return text;
}

std::string from_base64(std::string_view text) {
    static const std::array<int8_t, 256> VALUES = values_of_digits();
    size_t n_filled = text.size();
    while (n_filled > 0 && text.size() - n_filled < 2 && text[n_filled - 1] == '=') {
        n_filled--;
    }
    if (text.size() % 4 != 0) {
        throw Failure("bytes of a line are cut short");
    }
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    unsigned group = 0;
    int n_bits = 0;
    for (char digit : text.substr(0, n_filled)) {
        int8_t value = VALUES[static_cast<unsigned char>(digit)];
        if (value == NONE) {
            throw Failure("bytes of a line hold what is no digit");
        }
        group = group << 6 | static_cast<unsigned>(value);
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            bytes += static_cast<char>(group >> n_bits & 0xff);
        }
    }
    return bytes;
}

} // namespace perfsuite
