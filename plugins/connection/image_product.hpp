// Convolutions as matrix products whose second factor is looked up in images: where the numbers are. The
// three products are those of images with filters, its adjoint, and of images with images:
//
//     C (m x n) = sum over k of A (m x k) B (k x n)
//
//                  m         n                          k
//     convolve     outputs   pixels of y                taps of a filter
//     back         channels  pixels of x                outputs and the taps that meet the pixel
//     correlate    outputs   taps of a filter           pixels of y
#pragma once

#include <cstring>

#include <catena/plugin/cuda/index.hpp>

#include "convolution.hpp"

namespace catena::plugins {

enum class ImageProductKind : std::int32_t { convolve, back, correlate };

struct ImageProduct {
    static constexpr int tile_m = 64;
    static constexpr int tile_n = 128;
    static constexpr int depth = 16;  // k of a step

    // Where one k leads in A and B, and one n in B and C. An element of B lies within the image if the
    // sum of both y is at least 0 and below height, and so for x.
    struct alignas(16) Place {
        std::int64_t at;
        std::int32_t y, x;
    };

    std::int64_t images;  // at once
    std::int64_t a_row, out_row;
    std::int32_t m, k;  // k: of a class, at most
    std::int32_t height, width;
    ImageProductKind kind;
    std::int32_t first_class;
    std::int64_t per_split;  // k of each block's part
    // Of k: taps, or pixels, in one step of the outer number; and along a row. In `back` those differ
    // from class to class, by one: see Class.
    cuda::Divider<std::uint32_t> area[4], across[2];
    std::int32_t channels, h, w, outputs, oh, ow, kh, kw, stride_y, stride_x, pad_y, pad_x;

    // In `back`, pixels of x that meet the same taps: those whose y and x leave the same rest, divided
    // by the stride. Taps of a class lie a stride apart.
    struct Side {
        CATENA_FN Side(std::int32_t index, std::int32_t extent, std::int32_t stride,
                       std::int32_t pad, std::int32_t filter)
            : first_tap((index + pad) % stride),
              taps(first_tap < filter ? (filter - first_tap + stride - 1) / stride : 0),
              more(taps > filter / stride ? 1 : 0),
              pixels(index < extent ? (extent - index + stride - 1) / stride : 0),
              base((index + pad - first_tap) / stride) {}
        std::int32_t first_tap, taps, more, pixels;
        std::int32_t base;  // of y, for the first pixel and the first tap
    };
    struct Class {
        CATENA_FN Class(const ImageProduct& p, std::int32_t index)
            : row(index / p.class_columns()),
              column(index % p.class_columns()),
              y(row, p.h, p.stride_y, p.pad_y, p.kh),
              x(column, p.w, p.stride_x, p.pad_x, p.kw) {}
        std::int32_t row, column;
        Side y, x;
    };
    CATENA_FN std::int32_t class_columns() const {
        return w == 0 ? 1 : stride_x < w ? stride_x : w;
    }
    std::int64_t classes() const {
        const bool back = kind == ImageProductKind::back;
        return back ? std::int64_t{stride_y < h ? stride_y : h} * class_columns() : 1;
    }

    CATENA_FN std::int64_t n_of(const Class& c) const {
        switch (kind) {
            case ImageProductKind::convolve: return images * oh * ow;
            case ImageProductKind::back: return images * c.y.pixels * c.x.pixels;
            default: return std::int64_t{channels} * kh * kw;
        }
    }
    CATENA_FN std::int32_t k_of(const Class& c) const {
        return kind == ImageProductKind::back ? outputs * c.y.taps * c.x.taps : k;
    }
    // Where k leads in A (`a`), and in B.
    CATENA_FN Place place_of_k(const Class& c, std::uint32_t i, std::int64_t& a) const {
        const bool back = kind == ImageProductKind::back;
        const auto& by_area = area[back ? 2 * c.y.more + c.x.more : 0];
        const auto& by_row = across[back ? c.x.more : 0];
        const std::uint32_t outer = by_area.quotient(i);
        const std::uint32_t inside = i - outer * by_area.divisor();
        const std::uint32_t row = by_row.quotient(inside);
        const auto o = static_cast<std::int64_t>(outer);
        const auto y = static_cast<std::int32_t>(row);
        const auto x = static_cast<std::int32_t>(inside - row * by_row.divisor());
        switch (kind) {
            case ImageProductKind::convolve: a = i; return {(o * h + y) * w + x, y, x};
            case ImageProductKind::back:
                a = o * channels * kh * kw + (c.y.first_tap + y * stride_y) * kw + c.x.first_tap +
                    x * stride_x;
                return {(o * oh - y) * ow - x, -y, -x};
            default: a = (o * outputs * oh + y) * ow + x; return at_pixel(o, y, x);
        }
    }
    // Where n leads in B, and in C (`out`).
    CATENA_FN Place place_of_n(const Class& c, std::uint32_t i, std::int64_t& out) const {
        const bool back = kind == ImageProductKind::back;
        const bool n_is_taps = kind == ImageProductKind::correlate;
        const auto columns = static_cast<std::uint32_t>(n_is_taps ? kw : back ? c.x.pixels : ow);
        const auto rows = static_cast<std::uint32_t>(n_is_taps ? kh : back ? c.y.pixels : oh);
        const std::uint32_t line = i / columns;
        const auto o = static_cast<std::int64_t>(line / rows);
        const auto y = static_cast<std::int32_t>(line % rows);
        const auto x = static_cast<std::int32_t>(i % columns);
        if (n_is_taps) {
            out = i;
            return {(o * h + y) * w + x, y, x};
        }
        if (back) {
            out = (o * channels * h + c.row + std::int64_t{y} * stride_y) * w + c.column +
                  std::int64_t{x} * stride_x;
            const std::int32_t oy = c.y.base + y;
            const std::int32_t ox = c.x.base + x;
            return {(o * outputs * oh + oy) * ow + ox, oy, ox};
        }
        out = (o * outputs * oh + y) * ow + x;
        return at_pixel(o, y, x);
    }

    CATENA_FN static bool is_within(std::int32_t a, std::int32_t b, std::int32_t extent) {
        const auto sum = static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b);
        return sum < static_cast<std::uint32_t>(extent);
    }

private:
    // The first tap of the filter at a pixel of y.
    CATENA_FN Place at_pixel(std::int64_t image, std::int32_t oy, std::int32_t ox) const {
        const std::int32_t y = oy * stride_y - pad_y;
        const std::int32_t x = ox * stride_x - pad_x;
        return {(image * channels * h + y) * w + x, y, x};
    }
};

// What one launch counts at most; more goes in several. Variables, so that a test can make them small.
struct ImageProductLimits {
    static inline std::int64_t pixels = std::int64_t{1} << 30;
    static inline std::int64_t classes = 65535;  // blocks along z, and so along y
};

// What a kernel of 32 bits can count.
inline bool is_countable(const Convolution& c) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    constexpr std::int64_t most_m = std::int64_t{65535} * ImageProduct::tile_m;
    const auto fits = [&](std::int64_t a, std::int64_t b) { return times(a, b) < most; };
    return std::max(c.channels, c.outputs) <= most_m && fits(c.height, c.width) &&
           fits(c.oh, c.ow) && fits(c.channels, c.kh * c.kw) && fits(c.outputs, c.kh * c.kw) &&
           c.height + 2 * c.pad.y + c.kh + c.stride.y < most &&
           c.width + 2 * c.pad.x + c.kw + c.stride.x < most;
}

// Of some images.
inline ImageProduct image_product(const Convolution& c, ImageProductKind kind,
                                  std::int64_t images) {
    const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    ImageProduct p;
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    p.images = images;
    p.kind = kind;
    p.channels = narrow(c.channels), p.h = narrow(c.height), p.w = narrow(c.width);
    p.outputs = narrow(c.outputs), p.oh = narrow(c.oh), p.ow = narrow(c.ow);
    p.kh = narrow(c.kh), p.kw = narrow(c.kw);
    p.stride_y = narrow(c.stride.y), p.stride_x = narrow(c.stride.x);
    p.pad_y = narrow(c.pad.y), p.pad_x = narrow(c.pad.x);
    const bool back = kind == ImageProductKind::back;
    const bool k_is_taps = kind != ImageProductKind::correlate;
    p.m = back ? p.channels : p.outputs;
    p.k = narrow(!k_is_taps ? images * c.pixels() : c.channels * c.kh * c.kw);
    p.height = back ? p.oh : p.h;
    p.width = back ? p.ow : p.w;
    p.a_row = back ? c.kh * c.kw : k_is_taps ? c.taps() : c.pixels();
    p.out_row = back ? c.height * c.width : k_is_taps ? c.pixels() : c.taps();
    using Divider = cuda::Divider<std::uint32_t>;
    const auto divider = [](std::int64_t n) {
        return Divider(static_cast<std::uint32_t>(std::max<std::int64_t>(n, 1)));
    };
    for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t rows = !k_is_taps ? c.oh : !back ? c.kh : c.kh / c.stride.y + i / 2;
        const std::int64_t columns = !k_is_taps ? c.ow : !back ? c.kw : c.kw / c.stride.x + i % 2;
        p.area[i] = divider(rows * columns);
        p.across[i % 2] = divider(columns);
    }
    return p;
}

// Calls body(first, count) for images in parts that 32 bits can count.
template <class Body>
void for_each_part(const Convolution& c, const Body& body) {
    const std::int64_t most = std::max<std::int64_t>(
        ImageProductLimits::pixels / std::max({c.pixels(), c.height * c.width, std::int64_t{1}}),
        1);
    for (std::int64_t first = 0; first < c.n; first += most)
        body(first, std::min(most, c.n - first));
}
inline unsigned tiles(std::int64_t n, int tile) {
    return static_cast<unsigned>((n + tile - 1) / tile);
}

}  // namespace catena::plugins
