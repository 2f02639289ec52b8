// Comparison of arrays, and finite differences to compare gradients with.
#include "catena/testing/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>

#include "testing/types.hpp"

namespace catena::testing {

namespace {

using detail::to_double;
using detail::with_type;

// Returns the exact value of an integer of any dtype, or of a float that is an integer.
__extension__ using Integer = __int128;
std::optional<Integer> integer_at(const Array& a, std::int64_t i) {
    return with_type(a.dtype(), [&]<class T>(T) -> std::optional<Integer> {
        const T value = a.data<T>()[i];
        if constexpr (!std::is_integral_v<T>) {
            const double v = to_double(value);
            if (v != std::trunc(v) || v < -0x1p63 || v >= 0x1p64) return std::nullopt;
            return static_cast<Integer>(v);
        } else {
            return static_cast<Integer>(value);
        }
    });
}
std::string element_text(const Array& a, std::int64_t i, int digits) {
    return with_type(a.dtype(), [&]<class T>(T) -> std::string {
        if constexpr (std::is_integral_v<T>) return std::to_string(a.data<T>()[i]);
        char text[40];
        std::snprintf(text, sizeof text, "%.*g", digits, a.at(i));
        return text;
    });
}

// The largest finite number of a float's dtype.
double largest_of(catena_dtype dtype) {
    if (dtype.code == CATENA_CODE_BFLOAT) return 0x1.fep127;
    return dtype.bits == 16   ? 65504
           : dtype.bits == 32 ? std::numeric_limits<float>::max()
                              : std::numeric_limits<double>::max();
}
// `rounded` is the expected number in the dtype of `got`, whose largest finite number is `largest`. If the
// expected number is within `reach` of `largest`, infinity is accepted as well as a finite number.
bool agrees(double got, double expected, double rounded, double reach, double largest) {
    if (got == rounded || (std::isnan(got) && std::isnan(rounded))) return true;
    if (std::isnan(got) || !std::isfinite(expected)) return false;
    if (std::isinf(got)) return (got > 0 ? expected : -expected) + reach >= largest;
    return std::abs(got - (std::isinf(rounded) ? expected : rounded)) <= reach;
}

// Returns the derivative by central differences of fourth order, or NaN if there is a kink or a jump nearby,
// or if rounding errors dominate. at(d) is the function at x[i] = center + d, `here` its value at d = 0.
// `bend` is the largest accepted difference between the slopes on both sides. It is the same for all steps:
// with a smaller step, slopes of smooth functions differ less, but those at kinks do not.
template <class At>
double slope_of(const At& at, double center, double here, double step, double bend, bool wide) {
    const double up = at(step);
    const double down = at(-step);
    const double far_up = at(2 * step);
    const double far_down = at(-2 * step);
    const double slope = (8 * (up - down) - (far_up - far_down)) / (12 * step);
    const double near_bend = std::abs(up + down - 2 * here) / step;
    const double far_bend = std::abs(far_up + far_down - 2 * here) / (2 * step);
    const double size = 1 + std::abs(slope);
    const double lost = (std::abs(here) + std::abs(slope * center)) / step * (wide ? 2e-16 : 1e-7);
    return std::isfinite(slope) && std::max(near_bend, far_bend) <= bend * size &&
                   lost <= size * (wide ? 1e-6 : 1e-2)
               ? slope
               : std::nan("");
}

}  // namespace

std::string compare(const Array& got, const Array& expected, Tolerance tolerance) {
    if (bool(got) != bool(expected))
        return got ? "expected nothing" : "expected an array, got none";
    if (!got) return {};
    if (got.shape() != expected.shape())
        return "shape: expected " + plugin::text_of(plugin::Shape(expected.shape())) + ", got " +
               plugin::text_of(plugin::Shape(got.shape()));
    const auto differs = [&](const Array& e, std::int64_t i) {
        // Prints enough digits to distinguish the two.
        const bool alike = element_text(e, i, 9) == element_text(got, i, 9);
        const int digits = alike ? 17 : 9;
        return "element " + std::to_string(i) + ": expected " + element_text(e, i, digits) +
               ", got " + element_text(got, i, digits);
    };
    if (got == expected) return {};
    if (!got.floating()) {
        for (std::int64_t i = 0; i < got.size(); ++i)
            if (integer_at(got, i) != integer_at(expected, i)) return differs(expected, i);
        return {};
    }
    const Array rounded = expected.to(got.dtype());
    if (got == rounded) return {};
    const std::vector<double> g = got.numbers(), e = expected.numbers(), r = rounded.numbers();
    double scale = 1;
    for (const double value : r)
        if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
    const double largest = largest_of(got.dtype());
    for (std::size_t i = 0; i < g.size(); ++i) {
        const double reach = tolerance.absolute * scale + tolerance.relative * std::abs(e[i]);
        if (!agrees(g[i], e[i], r[i], reach, largest))
            return differs(rounded, static_cast<std::int64_t>(i));
    }
    return {};
}
std::string compare(const Arrays& got, const Arrays& expected, Tolerance tolerance,
                    const std::function<std::string(std::size_t)>& name) {
    if (got.size() != expected.size())
        return "expected " + std::to_string(expected.size()) + " arrays, got " +
               std::to_string(got.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        if (const std::string text = compare(got[i], expected[i], tolerance); !text.empty())
            return (name ? name(i) : std::to_string(i)) + ": " + text;
    return {};
}

bool has_nan(const Array& a) {
    if (!a || !a.floating()) return false;
    const std::vector<double> values = a.numbers();
    return std::any_of(values.begin(), values.end(),
                       [](double value) { return std::isnan(value); });
}
bool has_nan(const Arrays& arrays) {
    return std::any_of(arrays.begin(), arrays.end(), [](const Array& a) { return has_nan(a); });
}

double dot(const Arrays& a, const Arrays& b) {
    double sum = 0;
    for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
        if (!a[k] || !b[k]) continue;
        const std::vector<double> x = a[k].numbers(), y = b[k].numbers();
        sum = std::inner_product(x.begin(), x.end(), y.begin(), sum);
    }
    return sum;
}

Array differences(Arrays x, std::size_t which, double step, std::int64_t most,
                  const ScalarFunction& value) {
    Array result(x[which].shape(), dtype_of<double>());
    const std::int64_t n = x[which].size();
    const double here = n > 0 ? value(x) : 0;
    const bool wide = x[which].dtype().bits == 64;
    for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / most)) {
        const double center = x[which].at(i);
        const auto at = [&](double distance) {
            x[which].set(i, center + distance);
            return value(x);
        };
        const double bend = 100 * step;
        double slope = slope_of(at, center, here, step, bend, wide);
        if (std::isnan(slope) && wide) slope = slope_of(at, center, here, step / 100, bend, wide);
        x[which].set(i, center);
        if (!std::isnan(slope)) result.set(i, slope);
    }
    return result;
}

std::string compare_slopes(const Array& got, const Array& slopes, Tolerance tolerance,
                           std::int64_t& compared) {
    Array known = got;
    if (got.shape() == slopes.shape())
        for (std::int64_t i = 0; i < slopes.size(); ++i) {
            const double slope = slopes.at(i);
            if (std::isnan(slope)) continue;
            known.set(i, slope);
            ++compared;
        }
    else known = slopes;
    return compare(got, known, tolerance);
}

}  // namespace catena::testing
