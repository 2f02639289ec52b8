// The extents of an array, at most 16, without heap memory.
#pragma once

#include <catena/abi/tensor.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace catena {

class Shape {
public:
    Shape() = default;  // 0-d: a scalar
    Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents)) {}
    // Throws ShapeError for more than 16 extents or a negative one.
    explicit Shape(std::span<const std::int64_t> extents);

    int ndim() const noexcept { return ndim_; }
    std::int64_t operator[](int i) const noexcept { return extents_[i]; }
    std::int64_t& operator[](int i) noexcept { return extents_[i]; }
    const std::int64_t* data() const noexcept { return extents_; }
    const std::int64_t* begin() const noexcept { return extents_; }
    const std::int64_t* end() const noexcept { return extents_ + ndim_; }
    // Number of elements; 1 for a scalar.
    std::int64_t size() const noexcept;
    bool operator==(const Shape& other) const noexcept;

private:
    int ndim_ = 0;
    std::int64_t extents_[CATENA_MAX_NDIM];
};

// NumPy's format: "(2, 3)", "(5,)", "()".
std::string to_string(const Shape& shape);
std::string shape_to_string(const std::int64_t* extents, int ndim);

}  // namespace catena
