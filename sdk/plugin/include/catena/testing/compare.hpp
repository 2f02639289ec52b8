// Comparison of arrays, and finite differences to compare gradients with.
#pragma once

#include <cstdio>

#include "catena/testing/array.hpp"

namespace catena::testing {

struct Tolerance {
    double relative = 1e-5;
    double absolute = 1e-6;  // of the largest expected number, or of 1 if that is larger
    Tolerance times(double factor) const { return {relative * factor, absolute * factor}; }
};

// Empty if all elements agree (NaN with NaN), else what differs first. Expected numbers are rounded to
// the dtype of what was got.
inline std::string compare(const Array& got, const Array& expected, Tolerance tolerance) {
    if (bool(got) != bool(expected))
        return got ? "expected nothing" : "expected an array, got none";
    if (!got) return {};
    if (got.shape() != expected.shape())
        return "shape: expected " + plugin::text_of(plugin::Shape(expected.shape())) + ", got " +
               plugin::text_of(plugin::Shape(got.shape()));
    const Array rounded = expected.to(got.dtype());
    double largest = 1;
    for (std::int64_t i = 0; i < rounded.size(); ++i)
        if (std::isfinite(rounded.at(i))) largest = std::max(largest, std::abs(rounded.at(i)));
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double g = got.at(i);
        const double e = rounded.at(i);
        if ((std::isnan(g) && std::isnan(e)) || g == e) continue;
        if (!(std::abs(g - e) <= tolerance.absolute * largest + tolerance.relative * std::abs(e))) {
            char text[160];
            std::snprintf(text, sizeof text, "element %lld: expected %.9g, got %.9g",
                          static_cast<long long>(i), e, g);
            return text;
        }
    }
    return {};
}
inline std::string compare(const std::vector<Array>& got, const std::vector<Array>& expected,
                           Tolerance tolerance) {
    if (got.size() != expected.size())
        return "expected " + std::to_string(expected.size()) + " arrays, got " +
               std::to_string(got.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        if (const std::string text = compare(got[i], expected[i], tolerance); !text.empty())
            return std::to_string(i) + ": " + text;
    return {};
}

inline bool has_nan(const Array& a) {
    for (std::int64_t i = 0; a && a.floating() && i < a.size(); ++i)
        if (std::isnan(a.at(i))) return true;
    return false;
}
inline bool has_nan(const std::vector<Array>& arrays) {
    return std::any_of(arrays.begin(), arrays.end(), [](const Array& a) { return has_nan(a); });
}

// The sum of all products; missing arrays are zero.
inline double dot(const std::vector<Array>& a, const std::vector<Array>& b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
        for (std::int64_t i = 0; a[k] && b[k] && i < a[k].size(); ++i)
            sum += a[k].at(i) * b[k].at(i);
    return sum;
}

// d value(x) / d x[which] by central differences of fourth order. NaN where the function has no
// gradient (a kink or a jump is within reach), and for all but about `most` elements.
template <class Value>
Array differences(std::vector<Array> x, std::size_t which, double step, std::int64_t most,
                  const Value& value) {
    Array result(x[which].shape(), dtype_of<double>());
    const std::int64_t n = x[which].size();
    const double here = n > 0 ? value(x) : 0;
    for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / most)) {
        const double center = x[which].at(i);
        const auto at = [&](double distance) {
            x[which].set(i, center + distance);
            return value(x);
        };
        const double up = at(step);
        const double down = at(-step);
        const double far_up = at(2 * step);
        const double far_down = at(-2 * step);
        x[which].set(i, center);
        const double slope = (8 * (up - down) - (far_up - far_down)) / (12 * step);
        // What is left of smooth functions when slopes to both sides are compared goes with the step.
        const double near_bend = std::abs(up + down - 2 * here) / step;
        const double far_bend = std::abs(far_up + far_down - 2 * here) / (2 * step);
        if (std::max(near_bend, far_bend) <= 100 * step * (1 + std::abs(slope)))
            result.set(i, slope);
    }
    return result;
}

// Like compare(), where differences() found a gradient. The number of elements is added to `compared`.
inline std::string compare_slopes(const Array& got, const Array& slopes, Tolerance tolerance,
                                  std::int64_t& compared) {
    Array known = got;
    if (got.shape() == slopes.shape())
        for (std::int64_t i = 0; i < slopes.size(); ++i) {
            if (std::isnan(slopes.at(i))) continue;
            known.set(i, slopes.at(i));
            ++compared;
        }
    else known = slopes;
    return compare(got, known, tolerance);
}

}  // namespace catena::testing
