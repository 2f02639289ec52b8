// Positions for attention.
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/functions/attention.hpp>
#include <catena/functions/creation.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace catena::functions {
namespace {

// For sizes of lists that the host computes in a loop, before an array limits them.
constexpr std::int64_t most_on_host = std::int64_t{1} << 20;

void expect_floating(const char* function, Dtype dtype) {
    if (!is_floating(dtype))
        fail<DtypeError>("[{}] dtype: expected a floating one, got {}", function, name(dtype));
}

}  // namespace

RotaryTables rotary_tables(std::int64_t length, std::int64_t size, double base, Dtype dtype,
                           Device device, const RotaryScaling& scaling) {
    if (length < 1)
        fail<InvalidError>("[rotary_tables] length: expected at least 1, got {}", length);
    if (size < 2 || size > most_on_host || size % 2 != 0)
        fail<InvalidError>("[rotary_tables] size: expected an even number from 2 to {}, got {}",
                           most_on_host, size);
    if (!(base > 0)) fail<InvalidError>("[rotary_tables] base: expected above 0, got {}", base);
    expect_floating("rotary_tables", dtype);
    const auto& [factor, low, high, context] = scaling;
    if (!(factor > 0 && high > low && context >= 0))
        fail<InvalidError>(
            "[rotary_tables] scaling: expected a factor above 0, low < high and a context of 0 or "
            "more, got {}, {}, {} and {}",
            factor, low, high, context);
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < size / 2; ++i) {
        const double f = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
        const double turns = context * f / (2 * std::numbers::pi);
        const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
        frequencies.push_back(f * (kept + (1 - kept) / factor));
    }
    const Array angle = arange(length, Dtype::float64, device).reshape({length, 1}) *
                        Array::from(frequencies, {size / 2}, device);
    return {cos(angle).astype(dtype), sin(angle).astype(dtype)};
}

}  // namespace catena::functions
