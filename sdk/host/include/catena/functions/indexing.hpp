// Indexing as in NumPy: slices, integers, new axes, index arrays and masks; and functions that
// select, replace and add elements at indices. All are differentiable to any order in the elements,
// which have any dtype. Two arrays of elements are promoted to a common dtype as by operators.
#pragma once

#include <catena/functions.hpp>
#include <catena/lists.hpp>
#include <catena/operators.hpp>

#include <limits>
#include <optional>

namespace catena {

// begin:end:step. A missing begin or end is that of the axis; negative ones count from the end.
struct Slice {
    std::optional<std::int64_t> begin, end;
    std::int64_t step = 1;
};
// slice() is ":", slice(1, {}) is "1:", slice({}, {}, -1) is "::-1".
inline Slice slice() { return {}; }
inline Slice slice(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
                   std::int64_t step = 1) {
    return {begin, end, step};
}
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis;  // all axes that no other item indexes
inline constexpr NewAxis newaxis;    // a new axis of length 1

// One item of an index: an integer, which drops its axis; a slice; `ellipsis`; `newaxis`; an array
// of int32 or int64, whose axes replace its axis; or a mask, a bool array of one or more axes.
// Indices and masks are constants: a Variable stands for its data.
class Index {
public:
    template <std::integral N>
        requires(!std::same_as<N, bool>)
    Index(N i)  // NOLINT: is an item
        : slice_{static_cast<std::int64_t>(i), {}, 1}, kind_(Kind::integer) {}
    Index(Slice s) : slice_(s), kind_(Kind::slice) {}                     // NOLINT: is an item
    Index(Ellipsis) : kind_(Kind::rest) {}                                // NOLINT: is an item
    Index(NewAxis) : kind_(Kind::added) {}                                // NOLINT: is an item
    Index(Array array) : array_(std::move(array)), kind_(Kind::array) {}  // NOLINT: is an item
    Index(const Variable& array) : Index(array.data()) {}                 // NOLINT: is an item

    enum class Kind : std::int8_t { integer, slice, rest, added, array };
    Kind kind() const { return kind_; }
    std::int64_t integer() const { return *slice_.begin; }
    const Slice& slice() const& { return slice_; }
    const Array& array() const& { return array_; }
    Slice slice() && { return slice_; }
    Array array() && { return array_; }

private:
    Slice slice_;
    Array array_;
    Kind kind_;
};

}  // namespace catena

namespace catena::functions {

// x[index] as in NumPy: F::get_item(x, {1, slice(0, {}, 2), ellipsis, newaxis, mask}). Axes
// without an item are taken whole. Several index arrays and masks broadcast together; a mask stands
// for its nonzero() indices. The axes of index arrays replace the first indexed axis, or come first
// if a slice, `ellipsis` or `newaxis` separates index arrays or integers. The gradients of repeated
// elements add up. Masks are read on the host, since the result's shape depends on them. Throws
// InvalidError for items that do not fit x, ShapeError for arrays that do not broadcast or a mask
// of another shape, DtypeError for other arrays, and ValueError for an index out of range. On CUDA,
// an element at an index array's index out of range is NaN (0 for integers) instead.
// Unlike F::get_item(x, begin, end, step), where the lists hold one number for each axis, this is
// one list of items: F::get_item(x, {1}) drops axis 0.
Variable get_item(const Variable& x, std::span<const Index> index);
Array get_item(const Array& x, std::span<const Index> index);
inline Variable get_item(const Variable& x, std::initializer_list<Index> index) {
    return get_item(x, std::span(index.begin(), index.size()));
}
inline Array get_item(const Array& x, std::initializer_list<Index> index) {
    return get_item(x, std::span(index.begin(), index.size()));
}
// y = x, but y[index] = value, which broadcasts. If elements repeat, the last value counts. x and
// value get gradients. Has errors as get_item().
Variable set_item(const Variable& x, const ListOf<Index>& index, const Variable& value);
Array set_item(const Array& x, const ListOf<Index>& index, const Array& value);

// The indices of the elements that are not 0, in row-major order: int64 (n, ndim), as in
// torch.nonzero() and numpy.argwhere(). Column d has the indices of axis d. Waits for x, which may
// have any dtype, and returns the result on x's device.
Array nonzero(const Array& x);
inline Array nonzero(const Variable& x) { return nonzero(x.data()); }

// These with the axis before the indices, as in PyTorch.
template <Operand X>
X gather(const X& x, std::int64_t axis, const X& indices) {
    return gather(x, indices, axis);
}
template <Operand X>
X scatter(const X& x, std::int64_t axis, const X& indices, const X& src) {
    return scatter(x, indices, src, axis);
}
template <Operand X>
X scatter_add(const X& x, std::int64_t axis, const X& indices, const X& src) {
    return scatter_add(x, indices, src, axis);
}
template <Operand X>
X index_add(const X& x, std::int64_t axis, const X& indices, const X& src) {
    return index_add(x, indices, src, axis);
}

}  // namespace catena::functions
