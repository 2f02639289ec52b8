// The three products behind convolutions: images with filters, their adjoint, images with images.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution.hpp"

namespace catena::plugins {

// Taps of a filter that lie within the image: those of rows (or columns) [from, to).
struct Inside {
    Inside(std::int64_t place, std::int64_t stride, std::int64_t pad, std::int64_t size,
           std::int64_t side)
        : first(place * stride - pad),
          from(std::max<std::int64_t>(0, -first)),
          to(std::min(size, side - first)) {}
    std::int64_t first;
    std::int64_t from;
    std::int64_t to;
};

// y = x with w, plus bias (may be null), or added to y.
template <class T>
CATENA_KERNEL void convolve(const auto& call, const Convolution& c, const T* x, const T* w,
                            const T* bias, T* y, bool add) {
    call.parallel(
        c.n * c.outputs, c.pixels() * c.taps(),
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / c.outputs;
                const std::int64_t o = i % c.outputs;
                for (std::int64_t p = 0; p < c.pixels(); ++p) {
                    const Inside rows(p / c.ow, c.stride.y, c.pad.y, c.kh, c.height);
                    const Inside columns(p % c.ow, c.stride.x, c.pad.x, c.kw, c.width);
                    T sum = bias != nullptr ? bias[o] : T(0);
                    for (std::int64_t ch = 0; ch < c.channels; ++ch)
                        for (std::int64_t ky = rows.from; ky < rows.to; ++ky)
                            for (std::int64_t kx = columns.from; kx < columns.to; ++kx)
                                sum += w[((o * c.channels + ch) * c.kh + ky) * c.kw + kx] *
                                       x[((n * c.channels + ch) * c.height + rows.first + ky) *
                                             c.width +
                                         columns.first + kx];
                    store(y[i * c.pixels() + p], add, sum);
                }
            }
        });
}

// gx = the adjoint of convolve(), plus bias for each channel (may be null), or added to gx.
template <class T>
CATENA_KERNEL void convolve_back(const auto& call, const Convolution& c, const T* gy, const T* w,
                                 const T* bias, T* gx, bool add) {
    call.parallel(
        c.n * c.channels, c.pixels() * c.outputs * c.kh * c.kw,
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t n = i / c.channels;
                const std::int64_t ch = i % c.channels;
                T* const image = gx + i * c.height * c.width;
                for (std::int64_t j = 0; j < c.height * c.width; ++j)
                    store(image[j], add, bias != nullptr ? bias[ch] : T(0));
                for (std::int64_t o = 0; o < c.outputs; ++o)
                    for (std::int64_t p = 0; p < c.pixels(); ++p) {
                        const Inside rows(p / c.ow, c.stride.y, c.pad.y, c.kh, c.height);
                        const Inside columns(p % c.ow, c.stride.x, c.pad.x, c.kw, c.width);
                        const T g = gy[(n * c.outputs + o) * c.pixels() + p];
                        for (std::int64_t ky = rows.from; ky < rows.to; ++ky)
                            for (std::int64_t kx = columns.from; kx < columns.to; ++kx)
                                image[(rows.first + ky) * c.width + columns.first + kx] +=
                                    g * w[((o * c.channels + ch) * c.kh + ky) * c.kw + kx];
                    }
            }
        });
}

// gw = for each tap the sum of gy times x at the tap's place, or added to gw.
template <class T>
CATENA_KERNEL void correlate(const auto& call, const Convolution& c, const T* x, const T* gy, T* gw,
                             bool add) {
    call.parallel(
        c.outputs * c.channels, c.n * c.pixels() * c.kh * c.kw,
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t o = i / c.channels;
                const std::int64_t ch = i % c.channels;
                T* const filter = gw + i * c.kh * c.kw;
                if (!add) std::fill_n(filter, c.kh * c.kw, T(0));
                for (std::int64_t n = 0; n < c.n; ++n)
                    for (std::int64_t p = 0; p < c.pixels(); ++p) {
                        const Inside rows(p / c.ow, c.stride.y, c.pad.y, c.kh, c.height);
                        const Inside columns(p % c.ow, c.stride.x, c.pad.x, c.kw, c.width);
                        const T g = gy[(n * c.outputs + o) * c.pixels() + p];
                        for (std::int64_t ky = rows.from; ky < rows.to; ++ky)
                            for (std::int64_t kx = columns.from; kx < columns.to; ++kx)
                                filter[ky * c.kw + kx] +=
                                    g * x[((n * c.channels + ch) * c.height + rows.first + ky) *
                                              c.width +
                                          columns.first + kx];
                    }
            }
        });
}

// gb = gy summed over all but its channels, or added to gb.
template <class T>
CATENA_KERNEL void sum_channels(const auto& call, const Tensor<const T>& gy, T* gb, bool add) {
    sum_axes(call, Reduction(gy.shape, [](std::size_t d) { return d != 1; }), gy.data, gb, add);
}

}  // namespace catena::plugins
