// Checks and adapters for functions that are templates for variables and arrays.
#pragma once

#include <catena/fail.hpp>
#include <catena/operators.hpp>

namespace catena {

using detail::elements;

// Returns x, which must not be empty.
template <class X>
const X& expect(const char* function, std::string_view what, const X& x) {
    if (!x) fail<InvalidError>("[{}] {}: expected an array, got an empty handle", function, what);
    return x;
}
template <class X>
void expect_each(const char* function, const char* list, std::span<const X> xs) {
    for (std::size_t i = 0; i < xs.size(); ++i)
        if (!xs[i]) expect(function, fmt::format("{}[{}]", list, i), xs[i]);
}

// Returns an axis of ndim axes as an index. `shown`: the shape in the message.
inline int axis_index(const char* function, std::int64_t axis, int ndim, const Shape& shown,
                      const char* what = "axis") {
    if (axis < -ndim || axis >= ndim)
        fail<ShapeError>("[{}] {}: expected one of {}, got {}", function, what, to_string(shown),
                         axis);
    return static_cast<int>(axis < 0 ? axis + ndim : axis);
}
inline int axis_index(const char* function, std::int64_t axis, const Shape& shape,
                      const char* what = "axis") {
    return axis_index(function, axis, shape.ndim(), shape, what);
}

// Broadcasts extents, at least as many as axes of the shape, with it. Returns whether they fit.
inline bool broadcast_with(const Shape& shape, std::span<std::int64_t> extents) {
    const auto own = extents.last(static_cast<std::size_t>(shape.ndim()));
    for (int d = 0; d < shape.ndim(); ++d) {
        std::int64_t& extent = own[static_cast<std::size_t>(d)];
        if (shape[d] == 1 || shape[d] == extent) continue;
        if (extent != 1) return false;
        extent = shape[d];
    }
    return true;
}

// Returns an array as a constant of the type of the first argument.
inline Array constant(const Array&, Array a) { return a; }
inline Variable constant(const Variable&, Array a) { return as_variable(std::move(a)); }

}  // namespace catena
