#include "sha256.h"

#include <algorithm>
#include <cstring>

namespace perfsuite {

namespace {

constexpr std::array<uint32_t, 64> ROUND = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotated(uint32_t value, int n) { return value >> n | value << (32 - n); }

} // namespace

void Sha256::add(std::string_view content) {
    size_t n_held = n_bytes_ % held_.size();
    n_bytes_ += content.size();
    const char *at = content.data();
    size_t n_left = content.size();
    if (n_held != 0) {
        size_t n_taken = std::min(n_left, held_.size() - n_held);
        std::memcpy(held_.data() + n_held, at, n_taken);
        at += n_taken;
        n_left -= n_taken;
        if (n_held + n_taken < held_.size()) {
            return;
        }
        block(held_.data());
    }
    for (; n_left >= held_.size(); at += held_.size(), n_left -= held_.size()) {
        block(reinterpret_cast<const unsigned char *>(at));
    }
    if (n_left != 0) {
        std::memcpy(held_.data(), at, n_left);
    }
}

std::string Sha256::hex() {
    uint64_t n_bits = 8 * n_bytes_;
    std::string end(1, static_cast<char>(0x80));
    end.append((55 - n_bytes_ % 64 + 64) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8) {
        end += static_cast<char>(n_bits >> shift);
    }
    add(end);
    std::string digits;
    for (uint32_t word : state_) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            digits += "0123456789abcdef"[word >> shift & 15];
        }
    }
    return digits;
}

void Sha256::block(const unsigned char *bytes) {
    uint32_t words[64];
    for (int i = 0; i < 16; i++) {
        words[i] = static_cast<uint32_t>(bytes[4 * i]) << 24 | static_cast<uint32_t>(bytes[4 * i + 1]) << 16 |
                   static_cast<uint32_t>(bytes[4 * i + 2]) << 8 | bytes[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t near = rotated(words[i - 2], 17) ^ rotated(words[i - 2], 19) ^ words[i - 2] >> 10;
        uint32_t far = rotated(words[i - 15], 7) ^ rotated(words[i - 15], 18) ^ words[i - 15] >> 3;
        words[i] = near + words[i - 7] + far + words[i - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; i++) {
        uint32_t one = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + words[i];
        uint32_t two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t added[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state_.size(); i++) {
        state_[i] += added[i];
    }
}

} // namespace perfsuite
