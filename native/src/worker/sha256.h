/* SHA-256.  Source: FIPS 180-4, sections 4 to 6. */
#ifndef PERFSUITE_WORKER_SHA256_H
#define PERFSUITE_WORKER_SHA256_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace perfsuite {

class Sha256 {
  public:
    void add(std::string_view content);
    /* The digest as 64 hex digits; nothing may be added afterwards. */
    std::string hex();

  private:
    void block(const unsigned char *bytes);

    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> held_{};
    uint64_t n_bytes_ = 0;
};

} // namespace perfsuite

#endif
