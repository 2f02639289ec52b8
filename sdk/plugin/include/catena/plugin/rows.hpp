// Maxima, sums and sums of exponentials along one axis, vectorized for any stride.
#pragma once

#include <limits>

#include "catena/plugin/math.hpp"
#include "catena/plugin/reduce.hpp"

namespace catena::plugin {

// An axis of a dense tensor: `outer` blocks of `length` rows of `inner` elements.
struct Axis {
    Axis(Shape shape, std::size_t axis) : length(shape[axis]) {
        for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
        for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
    }
    std::int64_t count() const { return outer * inner; }  // lines along the axis

    std::int64_t outer = 1;
    std::int64_t length;
    std::int64_t inner = 1;
};

// Calls body(p) for groups of 16 elements, p[0 .. 16). A shorter last one is a copy with `padding`.
template <class T, class Body>
CATENA_KERNEL void by_sixteen(const T* p, std::int64_t n, T padding, const Body& body) {
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) body(p + i);
    if (i == n) return;
    T tail[16];
    for (std::int64_t j = 0; j < 16; ++j) tail[j] = padding;
    for (std::int64_t j = 0; i + j < n; ++j) tail[j] = p[i + j];
    body(tail);
}

// The maximum of n > 0 contiguous numbers; NaN may be ignored.
template <class T>
CATENA_KERNEL T max_of(const T* p, std::int64_t n) {
    T lane[16];
    for (std::int64_t j = 0; j < 16; ++j) lane[j] = p[0];
    by_sixteen(p, n, p[0], [&](const T* q) CATENA_LAMBDA {
        for (std::int64_t j = 0; j < 16; ++j) lane[j] = lane[j] > q[j] ? lane[j] : q[j];
    });
    for (std::int64_t width = 8; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j)
            lane[j] = lane[j] > lane[j + width] ? lane[j] : lane[j + width];
    return lane[0];
}

// The sum of e^(p[i] - shift) over n contiguous numbers.
template <class T>
CATENA_KERNEL T sum_exp(const T* p, std::int64_t n, T shift) {
    T lane[16] = {};
    by_sixteen(p, n, -std::numeric_limits<T>::infinity(), [&](const T* q) CATENA_LAMBDA {
        for (std::int64_t j = 0; j < 16; ++j) lane[j] += math::exp(q[j] - shift);
    });
    for (std::int64_t width = 8; width > 0; width /= 2)
        for (std::int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
    return lane[0];
}

// Computes the maximum of each of `width` adjacent lines, and its sum of e^(x - maximum). A line
// has n numbers, which lie `step` apart.
template <class T>
CATENA_KERNEL void max_and_sum_exp(const T* x, std::int64_t n, std::int64_t step,
                                   std::int64_t width, T* most, T* sum) {
    std::copy_n(x, width, most);
    std::fill_n(sum, width, T(0));
    for (std::int64_t i = 1; i < n; ++i)
        for (std::int64_t j = 0; j < width; ++j)
            most[j] = most[j] > x[i * step + j] ? most[j] : x[i * step + j];
    for (std::int64_t i = 0; i < n; ++i) {
        CATENA_LOOP
        for (std::int64_t j = 0; j < width; ++j) sum[j] += math::exp(x[i * step + j] - most[j]);
    }
}

// y[i] = factor * e^(x[i] - shift) for n contiguous numbers; or adds it to y[i].
template <class T>
CATENA_KERNEL void scaled_exp(const T* x, std::int64_t n, T shift, T factor, T* y, bool add) {
    const std::int64_t whole = n / 16 * 16;
    if (add) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) y[i] += factor * math::exp(x[i] - shift);
        return;
    }
    CATENA_LOOP
    for (std::int64_t i = 0; i < whole; ++i) y[i] = factor * math::exp(x[i] - shift);
    if (whole == n) return;
    T tail[16] = {};
    for (std::int64_t i = whole; i < n; ++i) tail[i - whole] = x[i];
    for (std::int64_t j = 0; j < 16; ++j) tail[j] = factor * math::exp(tail[j] - shift);
    for (std::int64_t i = whole; i < n; ++i) y[i] = tail[i - whole];
}

// f(0) + ... + f(n - 1), in 16 fixed lanes.
template <class T, class F>
CATENA_KERNEL T sum_lanes(std::int64_t n, const F& f) {
    constexpr std::int64_t lanes = 16;
    T total = 0;
    std::int64_t i = 0;
    if (n >= lanes) {
        T lane[lanes] = {};
        for (; i + lanes <= n; i += lanes)
            for (std::int64_t j = 0; j < lanes; ++j) lane[j] += f(i + j);
        for (std::int64_t width = lanes / 2; width > 0; width /= 2)
            for (std::int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
        total = lane[0];
    }
    for (; i < n; ++i) total += f(i);
    return total;
}

// Calls strip(line, p, width) for all lines of an axis, in parallel, with up to `most` adjacent
// lines at once. line is the index of the first, p the offset of its first element; consecutive
// elements of a line are axis.inner elements apart.
template <std::int64_t most = 64, class Call, class Strip>
void for_each_strip(const Call& call, const Axis& axis, const Strip& strip) {
    const std::int64_t inner = axis.inner;
    if (inner == 1) {
        auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t o = begin; o < end; ++o) strip(o, o * axis.length, 1);
        };
        return parallel<Call::isa>(call.context(), axis.outer, axis.length + 8, body);
    }
    const std::int64_t per_block = (inner + most - 1) / most;
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t o = s / per_block;
            const std::int64_t left = s % per_block * most;
            strip(o * inner + left, o * axis.length * inner + left, std::min(most, inner - left));
        }
    };
    parallel<Call::isa>(call.context(), axis.outer * per_block,
                        (axis.length + 8) * std::min(most, inner), body);
}

}  // namespace catena::plugin
