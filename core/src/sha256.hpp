// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace catena {

class Sha256 {
public:
    void add(const void* data, std::size_t size);
    // Lower-case hexadecimal; nothing may be added afterwards.
    std::string hex();

private:
    void block(const unsigned char* bytes);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> rest_{};
    std::uint64_t size_ = 0;
};

// Of all bytes of a file, from its begin. Throws PluginError with the bare reason.
std::string sha256_of(int fd);

}  // namespace catena
