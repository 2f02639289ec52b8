// The three products behind convolutions: images with filters, its adjoint, images with images.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution_correlate.hpp"
#include "convolution_gather.hpp"
#include "convolution_spread.hpp"

namespace catena::plugins {

// Whether the adjoint of c is best done as a convolution of gy with turned filters: adjoint_of(c).
// With a stride, or much more of x than of y, it would mostly multiply zeros.
inline bool gathers_back(const Convolution& c) {
    return c.stride.y == 1 && c.stride.x == 1 && c.pad.y < c.kh && c.pad.x < c.kw &&
           5 * c.height * c.width <= 6 * c.pixels();
}
inline Convolution adjoint_of(const Convolution& c) {
    return {.n = c.n,
            .channels = c.outputs,
            .height = c.oh,
            .width = c.ow,
            .outputs = c.channels,
            .oh = c.height,
            .ow = c.width,
            .kh = c.kh,
            .kw = c.kw,
            .stride = {1, 1},
            .pad = {c.kh - 1 - c.pad.y, c.kw - 1 - c.pad.x}};
}

// y = x with w, plus bias (may be null), or added to y.
template <class T, class Call>
CATENA_KERNEL void convolve(const Call& call, const Convolution& c, const T* x, const T* w,
                            const T* bias, T* y, bool add) {
    if (c.n * c.outputs == 0) return;
    const Gather<T, Call::isa> product(call.context(), c, call.template scratch<char>());
    product.run(x, {w, c.taps(), c.kh * c.kw, 1}, bias, y, add);
}
// gx = the adjoint of convolve() for gy, plus bias for each channel (may be null), or added to gx.
template <class T, class Call>
CATENA_KERNEL void convolve_back(const Call& call, const Convolution& c, const T* gy, const T* w,
                                 const T* bias, T* gx, bool add) {
    if (c.n * c.channels == 0) return;
    char* const scratch = call.template scratch<char>();
    const std::int64_t area = c.kh * c.kw;
    if (gathers_back(c)) {
        const Gather<T, Call::isa> product(call.context(), adjoint_of(c), scratch);
        product.run(gy, {w + area - 1, area, c.taps(), -1}, bias, gx, add);
    } else {
        const Spread<T, Call::isa> product(call.context(), c, scratch);
        product.run(gy, {w, c.taps(), area, 1}, bias, gx, add);
    }
}
// gw = the gradient of convolve() for w, or added to gw.
template <class T, class Call>
CATENA_KERNEL void correlate(const Call& call, const Convolution& c, const T* x, const T* gy, T* gw,
                             bool add) {
    if (c.n * c.outputs * c.channels == 0)
        return add ? void() : void(std::fill_n(gw, c.outputs * c.taps(), T(0)));
    const Correlate<T, Call::isa> product(call.context(), c, call.template scratch<char>());
    product.run(x, gy, gw, add);
}

// Scratch of the products above, enough for each instruction set.
template <class T, template <class, Isa> class Product, Isa... isa>
std::uint64_t scratch_of(catena_ctx* ctx, const Convolution& c, IsaList<isa...>) {
    return std::max({Product<T, isa>(ctx, c).bytes()...});
}
struct Wanted {
    bool convolve;
    bool back;
    bool correlate;
};
template <class T>
std::uint64_t scratch_for(const auto& call, const Convolution& c, Wanted wanted) {
    std::uint64_t bytes = 0;
    catena_ctx* const ctx = call.context();
    if (wanted.convolve && c.n * c.outputs > 0) bytes = scratch_of<T, Gather>(ctx, c, Isas());
    if (wanted.back && c.n * c.channels > 0)
        bytes = std::max(bytes, gathers_back(c) ? scratch_of<T, Gather>(ctx, adjoint_of(c), Isas())
                                                : scratch_of<T, Spread>(ctx, c, Isas()));
    if (wanted.correlate && c.n * c.outputs * c.channels > 0)
        bytes = std::max(bytes, scratch_of<T, Correlate>(ctx, c, Isas()));
    return bytes;
}

// gb = gy summed over all but its channels, or added to gb.
template <class T>
CATENA_KERNEL void sum_channels(const auto& call, const Tensor<const T>& gy, T* gb, bool add) {
    sum_axes(call, Reduction(gy.shape, [](std::size_t d) { return d != 1; }), gy.data, gb, add);
}

}  // namespace catena::plugins
