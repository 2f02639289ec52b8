// Indexing as in NumPy: slices, integers, new axes, index arrays and masks; and functions that
// select, replace and add elements at indices. All are differentiable to any order in the elements,
// which have any dtype. Two arrays of elements are promoted to a common dtype as by operators.
#pragma once

#include <catena/core/variable.hpp>

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

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
    requires(!std::same_as<N, bool>) Index(N i)  // NOLINT: is an item
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
Variable set_item(const Variable& x, std::span<const Index> index, const Variable& value);
Array set_item(const Array& x, std::span<const Index> index, const Array& value);
inline Variable set_item(const Variable& x, std::initializer_list<Index> index,
                         const Variable& value) {
    return set_item(x, std::span(index.begin(), index.size()), value);
}
inline Array set_item(const Array& x, std::initializer_list<Index> index, const Array& value) {
    return set_item(x, std::span(index.begin(), index.size()), value);
}

// The indices of the elements that are not 0, in row-major order: int64 (n, ndim), as in
// torch.nonzero() and numpy.argwhere(). Column d has the indices of axis d. Waits for x, which may
// have any dtype, and returns the result on x's device.
Array nonzero(const Array& x);
inline Array nonzero(const Variable& x) { return nonzero(x.data()); }

// In the functions below, indices are int32 or int64, and negative ones count from the end. An
// index out of range throws ValueError; on CUDA it reads NaN, and what it should write is dropped.

// torch.gather(): for axis 1 of three, y[i, j, k] = x[i, indices[i, j, k], k]. y has the shape of
// the indices, which may be shorter than x along the other axes.
Variable gather(const Variable& x, int axis, const Variable& indices);
Array gather(const Array& x, int axis, const Array& indices);
// torch.scatter(): y = x, but for axis 1 of three, y[i, indices[i, j, k], k] = src[i, j, k]. The
// indices may be shorter than x along the other axes, and shorter than src along all. If an index
// repeats, the last one counts, also in the gradient: src elements that are overwritten get 0.
Variable scatter(const Variable& x, int axis, const Variable& indices, const Variable& src);
Array scatter(const Array& x, int axis, const Array& indices, const Array& src);
// torch.scatter_add(): as scatter(), but y[...] += src[...]. Repeated indices add up.
Variable scatter_add(const Variable& x, int axis, const Variable& indices, const Variable& src);
Array scatter_add(const Array& x, int axis, const Array& indices, const Array& src);
// torch.index_add(): y = x, with slices of src added at the indices along an axis. The shape of src
// is that of F::take(x, indices, axis). Repeated indices add up.
Variable index_add(const Variable& x, int axis, const Variable& indices, const Variable& src);
Array index_add(const Array& x, int axis, const Array& indices, const Array& src);
// numpy.put(): y = x, but y.flat[indices] = values, which are repeated if there are fewer values
// than indices. If an index repeats, the last one counts. Throws ShapeError if there are no values.
Variable put(const Variable& x, const Variable& indices, const Variable& values);
Array put(const Array& x, const Array& indices, const Array& values);
// Chainer's: y[i] = x[i, t[i]] for x (N, classes) and t (N).
Variable select_item(const Variable& x, const Variable& t);
Array select_item(const Array& x, const Array& t);
// Chainer's: y = x with its slices along an axis in another order, y[i] = x[indices[i]], or with
// inv, y[indices[i]] = x[i]. Reads the indices on the host; ValueError if they are no permutation.
Variable permutate(const Variable& x, const Variable& indices, int axis = 0, bool inv = false);
Array permutate(const Array& x, const Array& indices, int axis = 0, bool inv = false);

}  // namespace catena::functions
