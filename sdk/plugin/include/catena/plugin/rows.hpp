// Rows: maxima, sums and sums of exponentials along one axis, vectorised whatever its stride is.
#pragma once

#include <cmath>

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

// The largest of n > 0 contiguous numbers; a NaN may be passed over.
template <class T>
CATENA_KERNEL T max_of(const T* p, std::int64_t n) {
    constexpr std::int64_t lanes = 16;
    T most = p[0];
    std::int64_t i = 0;
    if (n >= lanes) {
        T lane[lanes];
        for (std::int64_t j = 0; j < lanes; ++j) lane[j] = p[j];
        for (i = lanes; i + lanes <= n; i += lanes)
            for (std::int64_t j = 0; j < lanes; ++j)
                lane[j] = lane[j] > p[i + j] ? lane[j] : p[i + j];
        for (std::int64_t j = 0; j < lanes; ++j) most = most > lane[j] ? most : lane[j];
    }
    for (; i < n; ++i) most = most > p[i] ? most : p[i];
    return most;
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

// Calls strip(p, width) for all lines of an axis, in parallel; up to 64 lines that lie side by side at
// once. p is the offset of the first element; a line goes on every axis.inner elements.
template <class Call, class Strip>
void for_each_strip(const Call& call, const Axis& axis, const Strip& strip) {
    constexpr std::int64_t width = 64;
    const std::int64_t per_block = (axis.inner + width - 1) / width;
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t left = s % per_block * width;
            strip(s / per_block * axis.length * axis.inner + left,
                  std::min(width, axis.inner - left));
        }
    };
    parallel<Call::isa>(call.context(), axis.outer * per_block,
                        std::max<std::int64_t>(1, axis.length * std::min(width, axis.inner)), body);
}

}  // namespace catena::plugin
