// Pairs of sizes in the two directions of an image, and output sizes of filters.
#pragma once

#include <cstdint>
#include <vector>

namespace catena {

// (y, x), or one number for both: filter sizes, strides, pads.
struct Pair {
    Pair(std::int64_t both) : y(both), x(both) {}  // NOLINT(google-explicit-constructor)
    Pair(std::int64_t for_y, std::int64_t for_x) : y(for_y), x(for_x) {}
    std::vector<std::int64_t> list() const { return {y, x}; }
    friend bool operator==(const Pair&, const Pair&) = default;

    std::int64_t y;
    std::int64_t x;
};

// The number of positions of a window of k along `size` elements, with padding p on both sides and
// stride s: floor((size + 2p - k) / s) + 1, or 0 if the window does not fit. With cover_all there
// is one more if elements at the end would not be covered; the last window then extends beyond the
// padding. Throws InvalidError if s < 1, k < 1, or size or p is negative.
std::int64_t get_conv_outsize(std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                              bool cover_all = false);

}  // namespace catena
