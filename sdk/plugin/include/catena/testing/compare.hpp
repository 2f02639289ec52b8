// Compares arrays, and computes finite differences for comparing gradients.
#pragma once

#include <functional>

#include "catena/testing/array.hpp"

namespace catena::testing {

struct Tolerance {
    double relative = 1e-5;
    double absolute = 1e-6;  // as a fraction of the largest expected number, or of 1 if 1 is larger
    Tolerance times(double factor) const { return {relative * factor, absolute * factor}; }
};

// Returns an empty string if all elements agree, else the first difference. Integers and bools must
// be equal. NaN agrees with NaN, and inf with inf of the same sign. Other floats must be within the
// tolerance of the expected value, rounded to the dtype of `got`.
std::string compare(const Array& got, const Array& expected, Tolerance tolerance);
// The text begins with name(i) of the first array that differs, or with its number.
std::string compare(const Arrays& got, const Arrays& expected, Tolerance tolerance,
                    const std::function<std::string(std::size_t)>& name = {});

bool has_nan(const Array& a);
bool has_nan(const Arrays& arrays);
// The sum of a[k][i] * b[k][i] over all k and i. Missing arrays count as zeros.
double dot(const Arrays& a, const Arrays& b);

// The gradient of value(x) with respect to x[which], by finite differences. For float64, a
// hundredth of the step is tried too, in case the step is too large for the function's curvature.
// An element is NaN if no gradient was found. About `most` elements are computed; others are NaN.
using ScalarFunction = std::function<double(const Arrays&)>;
Array differences(Arrays x, std::size_t which, double step, std::int64_t most,
                  const ScalarFunction& value);
// compare() for the elements with a gradient in `slopes`. Adds their number to `compared`.
std::string compare_slopes(const Array& got, const Array& slopes, Tolerance tolerance,
                           std::int64_t& compared);

}  // namespace catena::testing
