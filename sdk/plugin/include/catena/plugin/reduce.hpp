// Sums of contiguous elements and sums over the axes of a tensor. They are computed in lanes and
// pieces that do not depend on the number of threads, so results are bit-identical for any number.
#pragma once

#include <algorithm>

#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Total: the accumulator for sums of T, double for floats, uint64 (modulo 2^64) for integers. Lane:
// the accumulator for a few values.
template <class T>
using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
template <class T>
using Lane = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
// The dtypes of x and of its sum or product, which is int64 for integers and bool.
using Totals =
    Rows<Row<float, float>, Row<double, double>, Row<std::int32_t, std::int64_t>,
         Row<std::int64_t, std::int64_t>, Row<std::uint8_t, std::int64_t>, Row<bool, std::int64_t>>;
constexpr catena_dtype total_dtype(catena_dtype x) {
    return x.code == CATENA_CODE_FLOAT || x.code == CATENA_CODE_BFLOAT ? x
                                                                       : dtype_of<std::int64_t>();
}

// The shape of x with extent 1 for some of its axes, which are reduced: those of a list, or all if
// the list is empty.
class Kept {
public:
    Kept(Shape x, Ints axes) : ndim_(x.size()) {
        std::copy(x.begin(), x.end(), shape_);
        for (const std::int64_t a : axes) reduced_ |= 1u << axis_index(a, ndim_);
        if (axes.empty()) reduced_ = ~0u;
        for (std::size_t d = 0; d < ndim_; ++d) {
            if (reduced(d)) n_reduced_ *= shape_[d], shape_[d] = 1;
            else without_[n_without_++] = shape_[d];
        }
    }
    bool reduced(std::size_t d) const { return (reduced_ >> d & 1) != 0; }
    std::int64_t n_reduced() const { return n_reduced_; }  // elements of x for each one kept
    // The shape with these axes, of extent 1, or without them.
    Shape shape(bool keepdims = true) const {
        return keepdims ? Shape(shape_, ndim_) : Shape(without_, n_without_);
    }

private:
    std::int64_t shape_[CATENA_MAX_NDIM];
    std::int64_t without_[CATENA_MAX_NDIM];
    std::size_t ndim_;
    std::size_t n_without_ = 0;
    std::int64_t n_reduced_ = 1;
    std::uint32_t reduced_ = 0;
};

// Checks the attribute "axis", a list, in infer(s), and returns the shape that it keeps.
template <class S>
Kept infer_kept(const S& s) {
    const Shape x = s.x(0);
    const Ints axes = s.template attr<"axis">();
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t a = s.axis(axes[i], x.size());
        for (std::size_t k = 0; k < i; ++k)
            s.check(s.axis(axes[k], x.size()) != a, "axis", "each axis once", axes,
                    CATENA_E_INVALID);
    }
    return {x, axes};
}

// Returns the sum of n contiguous elements: 64 lanes over pieces of 4096, added in Total<T>.
template <class T>
CATENA_KERNEL Total<T> sum_of(const T* p, std::int64_t n) {
    constexpr std::int64_t lanes = 64;
    Total<T> total = 0;
    while (n >= lanes) {
        const std::int64_t piece = std::min<std::int64_t>(n, 4096) / lanes * lanes;
        Lane<T> lane[lanes] = {};
        for (std::int64_t i = 0; i < piece; i += lanes)
            for (std::int64_t j = 0; j < lanes; ++j) lane[j] += static_cast<Lane<T>>(p[i + j]);
        for (std::int64_t width = lanes / 2; width >= 8; width /= 2)
            for (std::int64_t j = 0; j < width; ++j) lane[j] += lane[j + width];
        for (std::int64_t j = 0; j < 8; ++j) total += static_cast<Total<T>>(lane[j]);
        p += piece;
        n -= piece;
    }
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<Total<T>>(p[i]);
    return total;
}

// The kept and the summed axes of a dense tensor; adjacent axes of the same kind are merged.
class Reduction {
public:
    // reduced(d) tells whether axis d of shape is summed.
    template <class Reduced>
    Reduction(Shape shape, Reduced reduced) {
        for (std::size_t d = 0; d < shape.size(); ++d) {
            if (shape[d] == 1) continue;
            const bool r = reduced(d);
            if (ndim_ > 0 && reduced_[ndim_ - 1] == r) {
                size_[ndim_ - 1] *= shape[d];
            } else {
                if (ndim_ < 2) first_[r] = ndim_;  // kept and summed axes alternate
                size_[ndim_] = shape[d];
                reduced_[ndim_++] = r;
            }
        }
        std::int64_t stride = 1;
        for (std::size_t d = ndim_; d-- > 0; stride *= size_[d]) {
            stride_[d] = stride;
            (reduced_[d] ? n_reduced_ : n_kept_) *= size_[d];
        }
        inner_reduced_ = ndim_ > 0 && reduced_[ndim_ - 1];
        inner_ = ndim_ > 0 ? size_[ndim_ - 1] : 1;
    }
    std::int64_t n_kept() const { return n_kept_; }
    std::int64_t n_reduced() const { return n_reduced_; }
    bool inner_reduced() const { return inner_reduced_; }
    std::int64_t inner() const { return inner_; }  // extent of the last axis

    // The offset of the i-th kept (or summed) element, with the other indices 0.
    std::int64_t offset(std::int64_t i, bool reduced) const {
        std::int64_t offset = 0;
        for (std::size_t d = ndim_; d-- > 0;) {
            if (reduced_[d] != reduced) continue;
            if (d == first_[reduced]) return offset + i * stride_[d];
            offset += i % size_[d] * stride_[d];
            i /= size_[d];
        }
        return offset;
    }

private:
    std::size_t ndim_ = 0;
    std::int64_t size_[CATENA_MAX_NDIM];
    std::int64_t stride_[CATENA_MAX_NDIM];
    bool reduced_[CATENA_MAX_NDIM];
    std::size_t first_[2] = {};  // the outermost kept and the outermost summed axis
    std::int64_t n_kept_ = 1;
    std::int64_t n_reduced_ = 1;
    std::int64_t inner_ = 1;
    bool inner_reduced_ = false;
};

namespace detail {
template <class T>
void sum_axes(catena_ctx* ctx, Isa isa, const Reduction& r, const T* x, T* y, bool add);
template <class T>
void sum_to_shape(catena_ctx* ctx, Isa isa, const T* x, Shape from, T* y, Shape to, bool add) {
    const std::size_t more = from.size() - to.size();
    const Reduction r(from, [&](std::size_t d) { return d < more || to[d - more] == 1; });
    sum_axes(ctx, isa, r, x, y, add);
}
}  // namespace detail

// Sets y (the kept elements, dense) to the sum of x over the other axes; or adds it to y.
template <class Call, class T>
void sum_axes(const Call& call, const Reduction& r, const T* x, T* y, bool add) {
    detail::sum_axes(call.context(), Call::isa, r, x, y, add);
}

// Sets y to x of shape `from`, summed to the shape `to` that broadcasts to it; or adds it to y.
template <class Call, class T>
void sum_to_shape(const Call& call, const T* x, Shape from, T* y, Shape to, bool add) {
    detail::sum_to_shape(call.context(), Call::isa, x, from, y, to, add);
}

}  // namespace catena::plugin
