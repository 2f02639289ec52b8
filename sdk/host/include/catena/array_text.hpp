// Arrays and variables as text.
#pragma once

#include <catena/core/variable.hpp>

#include <iosfwd>

namespace catena {

// The elements in rows, as NumPy prints them, then shape, dtype and device:
//
//     array([[1  ,  2.5],
//            [3  , -4  ]], shape=(2, 2), float32, NAME:0)
//
// Six significant digits. Above 1000 elements, only the first and last three of each axis.
std::string to_string(const Array& array);
std::string to_string(const Variable& variable);

std::ostream& operator<<(std::ostream& out, const Array& array);
std::ostream& operator<<(std::ostream& out, const Variable& variable);
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, Dtype dtype);
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace catena
