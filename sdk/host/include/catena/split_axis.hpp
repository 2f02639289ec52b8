// F::split_axis: what concat() joined, apart again.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/core/variable.hpp>

#include <concepts>
#include <cstdint>
#include <vector>

namespace catena::functions {

// x cut along an axis (negative: from the last) before each index, into one piece more than there
// are indices; they must be within 0 and the axis's length and not decrease. Pieces are copies, and
// may be empty. The gradient, of any order, flows back to where a piece came from. As Chainer's and
// numpy.split(). Throws ShapeError, InvalidError for an empty handle.
std::vector<Variable> split_axis(const Variable& x, Ints indices, int axis);
std::vector<Array> split_axis(const Array& x, Ints indices, int axis);

// Where to cut for so many sections of equal length. Throws ShapeError if they do not come out even.
std::vector<std::int64_t> section_ends(const Shape& shape, std::int64_t sections, int axis);

// Into sections of equal length; a list, even {2}, is one of indices.
template <std::integral N>
std::vector<Variable> split_axis(const Variable& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}
template <std::integral N>
std::vector<Array> split_axis(const Array& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}

}  // namespace catena::functions
