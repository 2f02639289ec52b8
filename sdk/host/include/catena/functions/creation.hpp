// New arrays, as in NumPy. The device is by default the current one.
#pragma once

#include <catena/operators.hpp>

#include <optional>

namespace catena::functions {

// An array of one value, as Array::full().
inline Array full(const Shape& shape, double value, Dtype dtype = Dtype::float32,
                  Device device = {}) {
    return Array::full(shape, value, dtype, device);
}
// start, start + step, ... below stop, or above it for a negative step. Without a dtype the result
// is int64 if all numbers are integers, else float32. Integers are computed exactly. Throws
// InvalidError if step is 0, one is NaN, or there are more than 2^40 numbers.
Array arange(Scalar start, Scalar stop, Scalar step = 1, std::optional<Dtype> dtype = {},
             Device device = {});
inline Array arange(Scalar stop, std::optional<Dtype> dtype = {}, Device device = {}) {
    return arange(stop.is_integer() ? Scalar(0) : Scalar(0.0), stop, 1, dtype, device);
}
// n numbers at equal distances from start to stop, with or without stop itself. They are rounded
// from float64 to the dtype, for integers towards 0. Throws InvalidError unless n is 0 to 2^40.
Array linspace(double start, double stop, std::int64_t n = 50, bool endpoint = true,
               Dtype dtype = Dtype::float32, Device device = {});
// A matrix (n, m) of 1 in the k-th diagonal (eye), or in it and below (tri), else 0. m: -1 is n.
Array eye(std::int64_t n, std::int64_t m = -1, int k = 0, Dtype dtype = Dtype::float32,
          Device device = {});
Array tri(std::int64_t n, std::int64_t m = -1, int k = 0, Dtype dtype = Dtype::float32,
          Device device = {});

// Arrays with the shape and device of x, and its dtype unless one is given.
Array full_like(const Array& x, double value, std::optional<Dtype> dtype = {});
inline Array full_like(const Variable& x, double value, std::optional<Dtype> dtype = {}) {
    return full_like(x.data(), value, dtype);
}
template <Operand X>
Array zeros_like(const X& x, std::optional<Dtype> dtype = {}) {
    return full_like(x, 0, dtype);
}
template <Operand X>
Array ones_like(const X& x, std::optional<Dtype> dtype = {}) {
    return full_like(x, 1, dtype);
}

// Vectors along a new axis with 1 at index t, else 0. For t outside [0, depth) all are 0, so -1 can
// mark labels to ignore. t: integers, otherwise DtypeError.
Array one_hot(const Array& t, std::int64_t depth, int axis = -1, Dtype dtype = Dtype::float32);
inline Variable one_hot(const Variable& t, std::int64_t depth, int axis = -1,
                        Dtype dtype = Dtype::float32) {
    return as_variable(one_hot(t.data(), depth, axis, dtype));
}

}  // namespace catena::functions
