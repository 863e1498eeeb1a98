#include "contents.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace perfsuite {

namespace {

/* Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014: SplitMix64. */
uint64_t draw(uint64_t seed, uint64_t place) {
    uint64_t mixed = seed + (place + 1) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/* Values of four bytes each, by the place of each. */
template <typename Make> void fill(std::string &bytes, Make make) {
    for (size_t place = 0; 4 * place + 4 <= bytes.size(); place++) {
        auto value = make(place);
        static_assert(sizeof value == 4);
        std::memcpy(&bytes[4 * place], &value, 4);
    }
}

/* The sum of four whole numbers of 16 bits is near enough to a normal value, and exact. */
void fill_floats(std::string &bytes, uint64_t seed, float scale, float offset) {
    constexpr int32_t MEAN = 131070;
    const float unit = static_cast<float>(1.0 / std::sqrt((65536.0 * 65536.0 - 1.0) / 3.0));
    fill(bytes, [=](size_t place) {
        uint64_t bits = draw(seed, place);
        int32_t sum = -MEAN;
        for (int shift = 0; shift < 64; shift += 16) {
            sum += static_cast<int32_t>(bits >> shift & 0xFFFF);
        }
        return static_cast<float>(sum) * unit * scale + offset; /* the scale is a power of two: nothing rounds twice */
    });
}

void fill_wholes(std::string &bytes, uint64_t seed, uint64_t limit) {
    fill(bytes, [=](size_t place) { return static_cast<int32_t>((draw(seed, place) >> 32) * limit >> 32); });
}

/* Whole numbers that begin again at a limit. */
void fill_cycle(std::string &bytes, uint64_t limit, float offset) {
    uint64_t at = 0;
    fill(bytes, [&](size_t) {
        float value = static_cast<float>(at) + offset;
        at = at + 1 < limit ? at + 1 : 0;
        return value;
    });
}

void fill_bits(std::string &bytes, uint64_t seed, const std::string &mask) {
    size_t at_mask = 0;
    uint64_t bits = 0;
    for (size_t place = 0; place < bytes.size(); place++) {
        bits = place % 8 ? bits >> 8 : draw(seed, place / 8);
        bytes[place] = static_cast<char>(bits & static_cast<unsigned char>(mask[at_mask]));
        at_mask = at_mask + 1 == mask.size() ? 0 : at_mask + 1;
    }
}

} // namespace

std::string drawn_bytes(const Value &content) {
    int64_t n_bytes = content.at("n_bytes").whole();
    const std::string &kind = content.at("kind").text(), &mask = content.at("mask").bytes();
    auto seed = static_cast<uint64_t>(content.at("seed").whole());
    if (n_bytes < 1 || mask.empty()) {
        throw Failure("a plan asks for " + std::to_string(n_bytes) + " bytes under a mask of " +
                      std::to_string(mask.size()) + "; expected 1 or more of each");
    }
    std::string bytes(static_cast<size_t>(n_bytes), '\0');
    if (kind == "floats") {
        fill_floats(bytes, seed, static_cast<float>(content.at("scale").number()),
                    static_cast<float>(content.at("offset").number()));
    } else if (kind == "wholes") {
        fill_wholes(bytes, seed, static_cast<uint64_t>(content.at("limit").whole()));
    } else if (kind == "cycle") {
        fill_cycle(bytes, static_cast<uint64_t>(content.at("limit").whole()),
                   static_cast<float>(content.at("offset").number()));
    } else if (kind == "bits") {
        fill_bits(bytes, seed, mask);
    } else {
        throw Failure("a plan has contents of kind '" + kind + "'; known are floats, wholes, cycle, bits");
    }
    return bytes;
}

} // namespace perfsuite
