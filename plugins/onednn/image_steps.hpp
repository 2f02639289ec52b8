// Kernels that go image by image, and move more than they compute: steps of a few images.
#pragma once

#include <algorithm>

#include "engine.hpp"

namespace catena_onednn {

// A divisor of n, so that all steps are alike: images of `bytes` each that stay in the cache, in
// pieces for all threads.
inline std::int64_t images_of_step(std::int64_t n, std::int64_t bytes) {
    constexpr std::int64_t cache_bytes = 1 << 19;
    constexpr std::int64_t most_pieces = 16;
    std::int64_t images = std::clamp<std::int64_t>(
        std::min(cache_bytes / bytes, (n + most_pieces - 1) / most_pieces), 1, n);
    while (n % images != 0) --images;
    return images;
}

inline dnnl::primitive_attr with_scratchpad() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
}

template <class T>
T* at(void* base, std::size_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

}  // namespace catena_onednn
