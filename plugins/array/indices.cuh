// Indices along an axis, on CUDA. The host does not wait for the indices. If one is out of range,
// reading gives NaN, and adding does nothing.
#pragma once

#include <limits>

#include <catena/plugin/cuda/add_rows.cuh>

#include "ravel_multi_index.hpp"
#include "take.hpp"
#include "take_along_axis.hpp"

namespace catena::plugins {

template <class F, class I>
void check_picked(const cuda::Call<F>&, const Picked&, Tensor<const I>) {}

template <class T>
struct ReadPicked {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t row = i / p.inner;
        const std::int64_t at = p.index(p.shared ? row % p.n : i);
        C v = std::numeric_limits<C>::quiet_NaN();
        if (at >= 0 && at < p.length)
            v = cuda::load_as<C>(x[(row / p.n * p.length + at) * p.inner + i % p.inner]);
        cuda::store(y[i], add != 0, v);
    }
    Picked p;
    const T* x;
    T* y;
    std::int64_t add;
};
template <class F, class T>
void read_picked(const cuda::Call<F>& call, const Picked& p, const T* x, T* y, bool add) {
    cuda::each(call.queue(), p.size(), ReadPicked<T>{p, x, y, add});
}

// Positions and rows for sum_rows_on_device(): a row is a slice if the lines share the indices,
// otherwise an element.
struct PickedRows {
    explicit PickedRows(const Picked& picked)
        : p(picked),
          n(picked.outer * picked.n * (picked.shared ? 1 : picked.inner)),
          size(picked.shared ? picked.inner : 1),
          rows(picked.outer * picked.length * (picked.shared ? 1 : picked.inner)) {}
    __device__ __forceinline__ std::int64_t row(std::int64_t i) const {
        const std::int64_t lane = p.shared ? 0 : i % p.inner;
        const std::int64_t step = p.shared ? 1 : p.inner;
        const std::int64_t at = p.index(p.shared ? i % p.n : i);
        const std::int64_t o = i / (p.n * step);
        return at >= 0 && at < p.length ? (o * p.length + at) * step + lane : -1;
    }
    Picked p;
    std::int64_t n, size, rows;
};
template <class F, class T>
void add_picked(const cuda::Call<F>& call, const Picked& p, const T* src, Tensor<T> y, bool add) {
    if (!add) call.zero(y);
    if (p.size() == 0) return;
    const PickedRows rows(p);
    cuda::sum_rows_on_device<T>(call.queue(), rows,
                                {.n = rows.n,
                                 .n_rows = rows.rows,
                                 .size = rows.size,
                                 .rows = src,
                                 .table = y.data,
                                 .add = add},
                                call.template scratch<std::uint64_t>());
}

template <class I>
struct SetLast {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t at = p.index(i);
        const std::int64_t row = i / p.inner;
        if (at < 0 || at >= p.length) return;
        I* const place = y + (row / p.n * p.length + at) * p.inner + i % p.inner;
        // The value is positive, and CUDA has a maximum of unsigned 64-bit integers.
        if constexpr (sizeof(I) == 8)
            atomicMax(reinterpret_cast<unsigned long long*>(place),
                      static_cast<unsigned long long>(row % p.n + 1));
        else atomicMax(place, static_cast<I>(row % p.n + 1));
    }
    Picked p;
    I* y;
};
template <class F, class I>
void set_last(const cuda::Call<F>& call, const Picked& p, Tensor<I> y) {
    call.zero(y);
    cuda::each(call.queue(), p.size(), SetLast<I>{p, y.data});
}

template <class I>
struct Ravel {
    __device__ __forceinline__ void operator()(std::int64_t i) const { y[i] = indices(i); }
    AxisIndices<I> indices;
    I* y;
};
template <class F, class I>
void ravel(const cuda::Call<F>& call, const AxisIndices<I>& indices, Tensor<I> y) {
    cuda::each(call.queue(), y.size(), Ravel<I>{indices, y.data});
}

}  // namespace catena::plugins

namespace catena::plugin::cuda {

// Adding needs scratch memory: in backward of functions that read, in forward of those that add.
template <class F>
    requires requires { F::adds_in; }
struct Kernels<F> : F {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != F::adds_in) return;
        Shape target;
        if constexpr (F::adds_in == CATENA_PHASE_FORWARD) target = call.template attr<"shape">();
        else target = call.template gx<T>(0).shape;
        const auto indices = call.template x<I>(1);
        const catena::plugins::PickedRows rows(picked(call, target, indices, F::one_for_all));
        plan.scratch_bytes = row_sums_bytes(rows.n);
    }
};

}  // namespace catena::plugin::cuda
