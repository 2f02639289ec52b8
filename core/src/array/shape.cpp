// Extents of an array.
#include <catena/core/shape.hpp>

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace catena {

Shape::Shape(std::span<const std::int64_t> extents) : ndim_(static_cast<int>(extents.size())) {
    if (extents.size() > CATENA_MAX_NDIM) {
        throw ShapeError(fmt::format("[shape] rank: expected at most {}, got {}",
                                     static_cast<int>(CATENA_MAX_NDIM), extents.size()));
    }
    for (std::int64_t extent : extents) {
        if (extent < 0) {
            throw ShapeError(fmt::format("[shape] extents: expected none below 0, got ({})",
                                         fmt::join(extents, ", ")));
        }
    }
    std::copy(extents.begin(), extents.end(), extents_);
}

std::int64_t Shape::size() const noexcept {
    std::int64_t size = 1;
    for (std::int64_t extent : *this) size *= extent;
    return size;
}

bool Shape::operator==(const Shape& other) const noexcept {
    return std::equal(begin(), end(), other.begin(), other.end());
}

std::string shape_to_string(const std::int64_t* extents, int ndim) {
    return fmt::format("({}{})", fmt::join(extents, extents + ndim, ", "), ndim == 1 ? "," : "");
}

std::string to_string(const Shape& shape) { return shape_to_string(shape.data(), shape.ndim()); }

}  // namespace catena
