// SHA-256 by nettle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nettle/sha2.h>

namespace catena_jit {

class Sha256 {
public:
    Sha256() { sha256_init(&state_); }
    void add(const void* data, std::size_t size) {
        sha256_update(&state_, size, static_cast<const std::uint8_t*>(data));
    }
    void add(std::string_view text) { add(text.data(), text.size()); }
    std::array<unsigned char, SHA256_DIGEST_SIZE> digest() {
        std::array<unsigned char, SHA256_DIGEST_SIZE> bytes;
        sha256_digest(&state_, bytes.size(), bytes.data());
        return bytes;
    }
    // The digest in lower-case hexadecimal.
    std::string hex() {
        std::string text;
        for (const unsigned char byte : digest()) {
            text += "0123456789abcdef"[byte >> 4];
            text += "0123456789abcdef"[byte & 15];
        }
        return text;
    }

private:
    sha256_ctx state_;
};

}  // namespace catena_jit
