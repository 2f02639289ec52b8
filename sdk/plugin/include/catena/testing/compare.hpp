// Comparison of arrays, and finite differences to compare gradients with.
#pragma once

#include <functional>

#include "catena/testing/array.hpp"

namespace catena::testing {

struct Tolerance {
    double relative = 1e-5;
    double absolute = 1e-6;  // of the largest expected number, or of 1 if that is larger
    Tolerance times(double factor) const { return {relative * factor, absolute * factor}; }
};

// Empty if all elements agree, else what differs first: integers and bool exactly; NaN with NaN and
// inf with inf of the same sign; other floats within the tolerance of what is expected, rounded to
// the dtype of what was got.
std::string compare(const Array& got, const Array& expected, Tolerance tolerance);
// The text begins with name(i) of the first array that differs, or with its number.
std::string compare(const std::vector<Array>& got, const std::vector<Array>& expected,
                    Tolerance tolerance, const std::function<std::string(std::size_t)>& name = {});

bool has_nan(const Array& a);
bool has_nan(const std::vector<Array>& arrays);
// The sum of all products; missing arrays are zero.
double dot(const std::vector<Array>& a, const std::vector<Array>& b);

// d value(x) / d x[which]. Where the step is too large for how much a function of float64 bends, a
// hundredth of it is tried. NaN where the function has no gradient that could be found, and for all
// but about `most` elements.
using ScalarFunction = std::function<double(const std::vector<Array>&)>;
Array differences(std::vector<Array> x, std::size_t which, double step, std::int64_t most,
                  const ScalarFunction& value);
// Like compare(), where differences() found a gradient. The number of elements is added to `compared`.
std::string compare_slopes(const Array& got, const Array& slopes, Tolerance tolerance,
                           std::int64_t& compared);

}  // namespace catena::testing
