// F::split_axis: the inverse of concat().
#pragma once

#include <catena/bound_function.hpp>
#include <catena/core/variable.hpp>

namespace catena::functions {

// Splits x along an axis (negative: from the last) before each index, into one more piece than
// there are indices. The indices must be within 0 and the axis's length and must not decrease.
// Pieces are copies and may be empty. Differentiable to any order. Works like Chainer's and
// numpy.split(). Throws ShapeError; InvalidError for an empty handle.
std::vector<Variable> split_axis(const Variable& x, Ints indices, int axis);
std::vector<Array> split_axis(const Array& x, Ints indices, int axis);

// The indices for sections of equal length. Throws ShapeError if the length is not divisible.
std::vector<std::int64_t> section_ends(const Shape& shape, std::int64_t sections, int axis);

// Splits into sections of equal length. A list, even {2}, is a list of indices.
template <std::integral N>
std::vector<Variable> split_axis(const Variable& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}
template <std::integral N>
std::vector<Array> split_axis(const Array& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}

}  // namespace catena::functions
