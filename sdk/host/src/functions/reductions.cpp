// Reductions and sorting as compositions of registered functions.
#include "operands.hpp"

#include <catena/functions/logic.hpp>
#include <catena/functions/reductions.hpp>
#include <catena/operators.hpp>

#include <algorithm>
#include <cfloat>
#include <limits>

namespace catena::functions {
namespace of_reductions {
namespace {

// The square root, whose gradient is 0 at 0.
template <class X>
X root(const X& x) {
    const auto positive = x > 0.0;
    return sqrt(x + ~positive) * positive;
}

template <class X>
X deviation(const X& x, Ints axis, bool keepdims, std::int64_t ddof) {
    expect("std", "x", x);
    if (item_size(x.dtype()) == 2)  // the variance may be beyond its range
        return cast(deviation(cast(x, Dtype::float32), axis, keepdims, ddof), x.dtype());
    return root(var(x, axis, keepdims, ddof));
}

// The root of the sum of squares. Squares are those of x / scale, which neither overflow nor vanish.
// The scale is far below the largest number of the dtype, because gradients are multiplied by it.
template <class X>
X euclidean(const X& x, Ints axis, bool keepdims) {
    if (x.shape().size() == 0) return root(sum(x * x, axis, keepdims));
    const bool is_double = x.dtype() == Dtype::float64;
    const double least = is_double ? DBL_MIN : double{FLT_MIN};
    const double most = is_double ? DBL_MAX : double{FLT_MAX};
    const auto scale = [&](bool keep) {
        const Array largest = max(abs(elements(x)), axis, keep);
        const Array usual = where(largest > 1, largest * 0x1p-30, maximum(largest, least));
        return constant(x, where(largest <= most, usual, 1));
    };
    const X part = x / scale(true);
    return root(sum(part * part, axis, keepdims)) * scale(keepdims);
}

template <class X>
X norm_of(const X& x, double ord, Ints axis, bool keepdims) {
    expect("norm", "x", x);
    if (item_size(x.dtype()) == 2)
        return cast(norm_of(cast(x, Dtype::float32), ord, axis, keepdims), x.dtype());
    if (ord == 1) return sum(abs(x), axis, keepdims);
    if (ord == 2) return euclidean(x, axis, keepdims);
    if (ord != std::numeric_limits<double>::infinity())
        fail<InvalidError>("[norm] ord: expected 1, 2 or inf, got {}", ord);
    return max(abs(x), axis, keepdims);
}

template <class X>
X average_of(const X& x, Ints axis, const X& weights, bool keepdims) {
    expect("average", "x", x);
    if (!weights) return mean(x, axis, keepdims);
    if (item_size(x.dtype()) == 2 && x.dtype() == weights.dtype()) {  // the sums may be, too
        const X wide =
            average_of(cast(x, Dtype::float32), axis, cast(weights, Dtype::float32), keepdims);
        return cast(wide, x.dtype());
    }
    const Shape shape = x.shape();
    if (weights.shape() == shape)
        return sum(x * weights, axis, keepdims) / sum(weights, axis, keepdims);
    // Transposes weights of the extents of `axis` into the order of x, with extent 1 for others.
    const auto axes = axis.view();
    std::vector<std::int64_t> own, order, wide(static_cast<std::size_t>(shape.ndim()), 1);
    for (const std::int64_t a : axes) {
        const int d = axis_index("average", a, shape);
        own.push_back(shape[d]);
        wide[static_cast<std::size_t>(d)] = shape[d];
    }
    if (axes.empty() || !std::ranges::equal(weights.shape(), own))
        fail<ShapeError>("[average] weights.shape: expected {} or the extents of axis [{}], got {}",
                         to_string(shape), fmt::join(axes, ", "), to_string(weights.shape()));
    for (std::size_t i = 0; i < axes.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
    std::ranges::sort(order, {}, [&](std::int64_t i) {
        return axis_index("average", axes[static_cast<std::size_t>(i)], shape);
    });
    const X ordered = axes.size() > 1 ? transpose(weights, order) : weights;
    return sum(x * reshape(ordered, wide), axis, keepdims) / sum(weights);
}

// All elements of an axis, in order, and their indices.
template <class X>
auto sorted(const char* function, const X& x, std::int64_t axis, bool descending) {
    expect(function, "x", x);
    const Shape shape = x.shape();
    return topk(x, shape[axis_index(function, axis, shape)], axis, descending);
}

}  // namespace
}  // namespace of_reductions

Variable std(const Variable& x, Ints axis, bool keepdims, std::int64_t ddof) {
    return of_reductions::deviation(x, axis, keepdims, ddof);
}
Array std(const Array& x, Ints axis, bool keepdims, std::int64_t ddof) {
    return of_reductions::deviation(x, axis, keepdims, ddof);
}
Variable norm(const Variable& x, double ord, Ints axis, bool keepdims) {
    return of_reductions::norm_of(x, ord, axis, keepdims);
}
Array norm(const Array& x, double ord, Ints axis, bool keepdims) {
    return of_reductions::norm_of(x, ord, axis, keepdims);
}
Variable average(const Variable& x, Ints axis, const Variable& weights, bool keepdims) {
    return of_reductions::average_of(x, axis, weights, keepdims);
}
Array average(const Array& x, Ints axis, const Array& weights, bool keepdims) {
    return of_reductions::average_of(x, axis, weights, keepdims);
}
Variable sort(const Variable& x, std::int64_t axis, bool descending) {
    return of_reductions::sorted("sort", x, axis, descending).y;
}
Array sort(const Array& x, std::int64_t axis, bool descending) {
    return of_reductions::sorted("sort", x, axis, descending).y;
}
Variable argsort(const Variable& x, std::int64_t axis, bool descending) {
    return of_reductions::sorted("argsort", x, axis, descending).indices;
}
Array argsort(const Array& x, std::int64_t axis, bool descending) {
    return of_reductions::sorted("argsort", x, axis, descending).indices;
}

}  // namespace catena::functions
