// Pairs of sizes in an image's two directions, and how far a filter gets along them.
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

// Places of a window of k along `size` elements with p more at each end, s apart:
// floor((size + 2p - k) / s) + 1, and 0 if it does not fit. With cover_all there is one more where
// elements at the end would stay uncovered: the last window then reaches beyond the pad.
// Throws InvalidError if s < 1, k < 1, or size or p is negative.
std::int64_t get_conv_outsize(std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                              bool cover_all = false);

}  // namespace catena
