// Rotary position embedding on CUDA. A position outside the tables makes its row NaN.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "rotary_embedding.hpp"

namespace catena::plugins {

template <class T>
struct RotaryRule {
    using C = cuda::Compute<T>;
    // Rotates one pair, or copies one of the other elements.
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t each = r.width - r.pairs, row = i / each, part = i % each;
        const T* const from = x + row * r.width;
        T* const to = y + row * r.width;
        if (part >= r.pairs) {
            const std::int64_t d = part + r.pairs;
            cuda::store(to[d], add != 0, cuda::load_as<C>(from[d]));
            return;
        }
        const std::int64_t position = r.position(row), at = position * r.pairs + part;
        const bool there = position >= 0 && position < r.length;
        const C nothing = std::numeric_limits<C>::quiet_NaN();
        const C c = there ? cosines[at] : nothing,
                s = there ? static_cast<C>(sign) * sines[at] : nothing;
        const auto a = cuda::load_as<C>(from[r.first(part)]);
        const auto b = cuda::load_as<C>(from[r.second(part)]);
        cuda::store(to[r.first(part)], add != 0, a * c - b * s);
        cuda::store(to[r.second(part)], add != 0, b * c + a * s);
    }
    RotaryCase r;
    const T* x;
    const C* cosines;
    const C* sines;
    T* y;
    double sign;
    std::int64_t add;
};

template <class F, class T>
void rotate(const cuda::Call<F>& call, Tensor<const T> x, const cuda::Compute<T>* cosines,
            const cuda::Compute<T>* sines, Tensor<T> y, bool add, bool back) {
    RotaryCase r(call);
    r.size(x.shape);
    cuda::each(call.queue(), r.count * (r.width - r.pairs),
               RotaryRule<T>{r, x.data, cosines, sines, y.data, back ? -1.0 : 1.0, add});
}

}  // namespace catena::plugins
