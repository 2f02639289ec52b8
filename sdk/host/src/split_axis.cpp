// F::split_axis by get_item.
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/split_axis.hpp>

#include <fmt/ranges.h>

#include <limits>

namespace catena::functions {
namespace {

int axis_index(const Shape& shape, int axis) {
    const int n = shape.ndim();
    if (axis < -n || axis >= n)
        fail<ShapeError>("[split_axis] axis: expected one of {}, got {}", to_string(shape), axis);
    return axis < 0 ? axis + n : axis;
}

template <class X>
std::vector<X> split(const X& x, std::span<const std::int64_t> indices, int axis) {
    if (!x) throw InvalidError("[split_axis] x: expected an array, got an empty handle");
    const Shape shape = x.shape();
    const auto d = static_cast<std::size_t>(axis_index(shape, axis));
    const std::int64_t length = shape[static_cast<int>(d)];
    std::vector<std::int64_t> begin(d + 1, 0);
    std::vector<std::int64_t> end(d + 1, std::numeric_limits<std::int64_t>::max());
    std::vector<X> pieces;
    for (std::size_t i = 0; i <= indices.size(); ++i) {
        end[d] = i < indices.size() ? indices[i] : length;
        if (end[d] < begin[d] || end[d] > length)
            fail<ShapeError>(
                "[split_axis] indices: expected nondecreasing indices from 0 to {}, got [{}]",
                length, fmt::join(indices, ", "));
        pieces.push_back(get_item(x, begin, end));
        begin[d] = end[d];
    }
    return pieces;
}

}  // namespace

std::vector<Variable> split_axis(const Variable& x, Ints indices, int axis) {
    return split(x, indices.view(), axis);
}
std::vector<Array> split_axis(const Array& x, Ints indices, int axis) {
    return split(x, indices.view(), axis);
}

std::vector<std::int64_t> section_ends(const Shape& shape, std::int64_t sections, int axis) {
    const std::int64_t length = shape[axis_index(shape, axis)];
    if (sections < 1 || length % sections != 0)
        fail<ShapeError>(
            "[split_axis] sections: expected a divisor of {}, the length of axis {} of {}, got {}",
            length, axis, to_string(shape), sections);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 1; i < sections; ++i) indices.push_back(i * (length / sections));
    return indices;
}

}  // namespace catena::functions
