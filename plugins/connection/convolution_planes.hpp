// Planes: copies of a band of images' rows with the pad around it, apart for each phase of the stride,
// so that what a tap sees of neighbouring places lies side by side.
#pragma once

#include "convolution_tiles.hpp"

namespace catena::plugins {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// A product of two arrays of a convolution, and its scratch memory: for all workers, and for each.
class ConvolutionProduct {
public:
    std::uint64_t bytes() const { return static_cast<std::uint64_t>(blocks_.bytes()); }

protected:
    ConvolutionProduct(catena_ctx* ctx, const Convolution& c, void* scratch)
        : ctx_(ctx), c_(c), blocks_(scratch) {}
    // take(blocks): what a worker takes from blocks_of(slot).
    void take_for_workers(const auto& take) {
        Blocks own;
        take(own);
        own_bytes_ = own.bytes();
        own_ = blocks_.take<char>(own_bytes_ * host().slots(ctx_));
    }
    Blocks blocks_of(std::int32_t slot) const { return Blocks(own_ + own_bytes_ * slot); }

    catena_ctx* ctx_;
    Convolution c_;
    Blocks blocks_;

private:
    char* own_ = nullptr;
    std::int64_t own_bytes_ = 0;
};

// Filters as an array with any strides; taps count through (kh, kw).
template <class T>
struct Filters {
    const T* data;
    std::int64_t output, channel, tap;  // strides

    const T& operator()(std::int64_t o, std::int64_t c, std::int64_t t) const {
        return data[o * output + c * channel + t * tap];
    }
};

// The planes of an image: `lines` rows of `width` places for each channel and phase.
struct Planes {
    Planes(const Convolution& c, std::int64_t channels, std::int64_t band)
        : phases{std::min(c.stride.y, c.kh), std::min(c.stride.x, c.kw)},
          lines(band + (c.kh - 1) / c.stride.y),
          width(c.ow + (c.kw - 1) / c.stride.x),
          // Large ones an odd number of cache lines: else they would meet in one set of a cache.
          plane(lines * width < 256 ? lines * width : round_up(lines * width, 32) + 16),
          size(channels * phases.y * phases.x * plane) {}

    std::int64_t tap(const Convolution& c, std::int64_t channel, std::int64_t ky,
                     std::int64_t kx) const {
        const std::int64_t phase =
            (channel * phases.y + ky % c.stride.y) * phases.x + kx % c.stride.x;
        return phase * plane + ky / c.stride.y * width + kx / c.stride.x;
    }
    // Planes of x's channels [from, to) for the places of rows first, first + 1 ...
    template <class T>
    CATENA_KERNEL void fill(const Convolution& c, const T* x, std::int64_t from, std::int64_t to,
                            std::int64_t first, T* planes) const {
        for (std::int64_t channel = from; channel < to; ++channel) {
            const T* const image = x + channel * c.height * c.width;
            if (width == c.width && c.stride.x == 1 && c.stride.y == 1) {
                // Rows lie one after another here as there.
                const std::int64_t top = std::clamp<std::int64_t>(c.pad.y - first, 0, lines);
                const std::int64_t end =
                    std::clamp<std::int64_t>(c.height + c.pad.y - first, top, lines);
                std::fill_n(planes, top * width, T(0));
                std::copy_n(image + std::max<std::int64_t>(first - c.pad.y, 0) * width,
                            (end - top) * width, planes + top * width);
                std::fill_n(planes + end * width, (lines - end) * width, T(0));
                planes += plane;
                continue;
            }
            for (std::int64_t ry = 0; ry < phases.y; ++ry)
                for (std::int64_t rx = 0; rx < phases.x; ++rx, planes += plane)
                    fill_phase(c, image, first * c.stride.y + ry - c.pad.y, rx, planes);
        }
    }

    // The reverse of fill() for all rows: x = what lies in the planes, plus bias for each channel (may
    // be null), or added to x.
    template <class T>
    CATENA_KERNEL void empty(const Convolution& c, const T* planes, std::int64_t from,
                             std::int64_t to, const T* bias, T* x, bool add) const {
        for (std::int64_t channel = from; channel < to; ++channel) {
            const T base = bias != nullptr ? bias[channel] : T(0);
            for (std::int64_t row = 0; row < c.height; ++row) {
                T* const target = x + (channel * c.height + row) * c.width;
                if (!add) std::fill_n(target, c.width, base);
                else if (bias != nullptr)
                    for (std::int64_t i = 0; i < c.width; ++i) target[i] += base;
                const std::int64_t ry = (row + c.pad.y) % c.stride.y;
                const std::int64_t line = (row + c.pad.y) / c.stride.y;
                if (ry >= phases.y || line >= lines) continue;  // no tap comes here
                for (std::int64_t rx = 0; rx < phases.x; ++rx) {
                    const std::int64_t phase = ((channel - from) * phases.y + ry) * phases.x + rx;
                    const T* const source = planes + phase * plane + line * width;
                    const Columns columns(c, *this, rx);
                    if (c.stride.x == 1) {
                        CATENA_LOOP
                        for (std::int64_t i = columns.left; i < columns.right; ++i)
                            target[i - columns.skip] += source[i];
                    } else {
                        for (std::int64_t i = columns.left; i < columns.right; ++i)
                            target[i * c.stride.x - columns.skip] += source[i];
                    }
                }
            }
        }
    }
    // Columns n of places from q on, counted through rows, bands of `pixels` places and images;
    // results of an image lie image_step apart. Returns the number of runs.
    std::int64_t cut(const Convolution& c, std::int64_t q, std::int64_t n, std::int64_t pixels,
                     std::int64_t image_step, Run* runs) const {
        std::int64_t count = 0;
        for (std::int64_t done = 0; done < n;) {
            const std::int64_t image = (q + done) / pixels;
            const std::int64_t place = (q + done) % pixels;
            const std::int64_t x = place % c.ow;
            const std::int64_t left = width == c.ow ? pixels - place : c.ow - x;
            const std::int64_t length = std::min(n - done, left);
            runs[count++] = {done, image * size + place / c.ow * width + x,
                             image * image_step + place, length};
            done += length;
        }
        return count;
    }

    Pair phases;
    std::int64_t lines, width;
    std::int64_t plane;
    std::int64_t size;

private:
    // Every stride-th row from `row` on, every stride-th column from rx on.
    template <class T>
    CATENA_KERNEL void fill_phase(const Convolution& c, const T* image, std::int64_t row,
                                  std::int64_t rx, T* to) const {
        const Columns columns(c, *this, rx);
        for (std::int64_t j = 0; j < lines; ++j, row += c.stride.y, to += width) {
            if (row < 0 || row >= c.height) {
                std::fill_n(to, width, T(0));
                continue;
            }
            const T* const from = image + row * c.width - columns.skip;
            for (std::int64_t i = 0; i < columns.left; ++i) to[i] = 0;
            if (c.stride.x == 1) {
                CATENA_LOOP
                for (std::int64_t i = columns.left; i < columns.right; ++i) to[i] = from[i];
            } else {
                for (std::int64_t i = columns.left; i < columns.right; ++i)
                    to[i] = from[i * c.stride.x];
            }
            for (std::int64_t i = columns.right; i < width; ++i) to[i] = 0;
        }
    }

    // Columns [left, right) of a plane are the image's: i is i * stride - skip there.
    struct Columns {
        Columns(const Convolution& c, const Planes& p, std::int64_t rx)
            : skip(c.pad.x - rx),
              left(std::clamp<std::int64_t>(ceil_div(skip, c.stride.x), 0, p.width)),
              right(std::clamp<std::int64_t>(ceil_div(c.width + skip, c.stride.x), left, p.width)) {
        }
        std::int64_t skip, left, right;
    };
};

}  // namespace catena::plugins
