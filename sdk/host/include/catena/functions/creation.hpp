// New arrays, as in NumPy. The device is by default the current one.
#pragma once

#include <catena/functions.hpp>
#include <catena/operators.hpp>

#include <optional>

namespace catena::functions {

// start, start + step, ... below stop, or above it for a negative step. Without a dtype the result
// is int64 if all numbers are integers, else float32. Integers are computed exactly. Throws
// InvalidError if step is 0, one is NaN, or there are more than 2^40 numbers.
Array arange(Scalar start, Scalar stop, Scalar step = 1, std::optional<Dtype> dtype = {},
             Device device = {});
inline Array arange(Scalar stop, std::optional<Dtype> dtype = {}, Device device = {}) {
    return arange(stop.is_integer() ? Scalar(0) : Scalar(0.0), stop, 1, dtype, device);
}

// Arrays with the shape and device of x, and its dtype unless one is given.
template <Operand X>
Array full_like(const X& x, double value, std::optional<Dtype> dtype = {}) {
    return full(x.shape(), value, dtype.value_or(x.dtype()), catena::detail::elements(x).device());
}
template <Operand X>
Array zeros_like(const X& x, std::optional<Dtype> dtype = {}) {
    return full_like(x, 0, dtype);
}
template <Operand X>
Array ones_like(const X& x, std::optional<Dtype> dtype = {}) {
    return full_like(x, 1, dtype);
}

}  // namespace catena::functions
