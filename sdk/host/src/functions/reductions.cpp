// Reductions and sorting as compositions of registered functions.
#include <catena/fail.hpp>
#include <catena/functions/reductions.hpp>
#include <catena/operators.hpp>

#include <algorithm>
#include <limits>

namespace catena::functions {
namespace of_reductions {
namespace {

template <class X>
void expect_array(const char* function, const char* what, const X& x) {
    if (!x) fail<InvalidError>("[{}] {}: expected an array, got an empty handle", function, what);
}
// An axis of x as an index; `function` checks it if it is out of range.
std::size_t index_of(std::int64_t axis, const Shape& shape) {
    return static_cast<std::size_t>(axis < 0 ? axis + shape.ndim() : axis);
}

// The square root, whose gradient is 0 at 0.
template <class X>
X root(const X& x) {
    const auto positive = x > 0.0;
    return sqrt(x + ~positive) * positive;
}

template <class X>
X deviation(const X& x, Ints axis, bool keepdims, std::int64_t ddof) {
    expect_array("std", "x", x);
    return root(var(x, axis, keepdims, ddof));
}

template <class X>
X norm_of(const X& x, double ord, Ints axis, bool keepdims) {
    expect_array("norm", "x", x);
    if (item_size(x.dtype()) == 2)
        return cast(norm_of(cast(x, Dtype::float32), ord, axis, keepdims), x.dtype());
    if (ord == 1) return sum(abs(x), axis, keepdims);
    if (ord == 2) return root(sum(x * x, axis, keepdims));
    if (ord != std::numeric_limits<double>::infinity())
        fail<InvalidError>("[norm] ord: expected 1, 2 or inf, got {}", ord);
    return max(abs(x), axis, keepdims);
}

template <class X>
X average_of(const X& x, Ints axis, const X& weights, bool keepdims) {
    expect_array("average", "x", x);
    if (!weights) return mean(x, axis, keepdims);
    const Shape shape = x.shape();
    if (weights.shape() == shape)
        return sum(x * weights, axis, keepdims) / sum(weights, axis, keepdims);
    // Transposes weights of the extents of `axis` into the order of x, with extent 1 for others.
    const auto axes = axis.view();
    const auto ndim = static_cast<std::size_t>(shape.ndim());
    std::vector<std::int64_t> own, order, wide(ndim, 1);
    for (const std::int64_t a : axes) {
        const std::size_t d = index_of(a, shape);
        own.push_back(d < ndim ? shape[static_cast<int>(d)] : -1);
        if (d < ndim) wide[d] = own.back();
    }
    if (axes.empty() || !std::ranges::equal(weights.shape(), own))
        fail<ShapeError>("[average] weights.shape: expected {} or the extents of axis [{}], got {}",
                         to_string(shape), fmt::join(axes, ", "), to_string(weights.shape()));
    for (std::size_t i = 0; i < axes.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
    std::ranges::sort(order, {}, [&](std::int64_t i) {
        return index_of(axes[static_cast<std::size_t>(i)], shape);
    });
    const X ordered = axes.size() > 1 ? transpose(weights, order) : weights;
    return sum(x * reshape(ordered, wide), axis, keepdims) / sum(weights);
}

// All elements of an axis, in order, and their indices.
template <class X>
auto sorted(const char* function, const X& x, std::int64_t axis, bool descending) {
    expect_array(function, "x", x);
    const Shape shape = x.shape();
    const std::size_t d = index_of(axis, shape);
    if (d >= static_cast<std::size_t>(shape.ndim()))
        fail<ShapeError>("[{}] axis: expected one of {}, got {}", function, to_string(shape), axis);
    return topk(x, shape[static_cast<int>(d)], axis, descending);
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
