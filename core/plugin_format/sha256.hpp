// SHA-256 (FIPS 180-4): for the core, and compiled into plugins that want it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace catena {

class Sha256 {
public:
    void add(const void* data, std::size_t size);
    void add(std::string_view text) { add(text.data(), text.size()); }
    // Of all that was added; nothing may be added afterwards.
    std::array<unsigned char, 32> digest();
    std::string hex();  // the same, in lower case

private:
    void block(const unsigned char* bytes);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> rest_{};
    std::uint64_t size_ = 0;
};

}  // namespace catena
