// Kernels that move more than they compute: images or channels in steps, each in a thread's own place.
#pragma once

#include <climits>
#include <initializer_list>

#include "engine.hpp"

namespace catena_onednn {

// An array (N, C, ...): what follows the channels is two axes.
struct Images {
    explicit Images(const catena_tensor& x) : Images(shape_of(x)) {}
    explicit Images(Shape x) : n(x[0]), channels(x[1]), height(x.size() > 2 ? x[2] : 1) {
        for (std::size_t i = 3; i < x.size(); ++i) width *= x[i];
    }
    std::int64_t plane() const { return height * width; }
    std::int64_t image() const { return channels * plane(); }
    bool operator==(const Images&) const = default;

    std::int64_t n, channels, height, width = 1;
};

// Whether oneDNN takes these sizes.
inline bool fit(std::initializer_list<std::int64_t> sizes) {
    return std::ranges::min(sizes) >= 1 && std::ranges::max(sizes) <= INT_MAX;
}
inline bool fit(const Images& x) { return fit({x.n, x.channels, x.height, x.width}); }

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

// One step's scratch memory, laid out once; every thread has its own.
class Place : public Layout {
public:
    std::size_t scratch_bytes(std::int32_t slots) const {
        return static_cast<std::size_t>(slots) * size();
    }
    // body(step, mine) for steps 0 .. n on the host's threads; mine(offset) is where a piece begins.
    template <class Body>
    void for_each(catena_ctx* ctx, std::int64_t n, void* scratch, const Body& body) const {
        parallel(ctx, n, [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
            const std::size_t own = static_cast<std::size_t>(slot) * size();
            const auto mine = [&](std::size_t offset) { return at<float>(scratch, own + offset); };
            for (std::int64_t i = begin; i < end; ++i) body(i, mine);
        });
    }
};

}  // namespace catena_onednn
