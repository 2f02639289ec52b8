// Positions for attention.
#include <catena/functions/attention.hpp>

#include <catena/fail.hpp>

#include <bit>
#include <cmath>
#include <span>

namespace catena::functions {

RotaryTables rotary_tables(std::int64_t length, std::int64_t size, double base) {
    if (length < 1)
        fail<InvalidError>("[rotary_tables] length: expected at least 1, got {}", length);
    if (size < 2 || size % 2 != 0)
        fail<InvalidError>("[rotary_tables] size: expected an even number above 0, got {}", size);
    if (!(base > 0)) fail<InvalidError>("[rotary_tables] base: expected above 0, got {}", base);
    std::vector<float> cos, sin;
    for (std::int64_t p = 0; p < length; ++p)
        for (std::int64_t i = 0; i < size / 2; ++i) {
            const double angle =
                static_cast<double>(p) *
                std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(size));
            cos.push_back(static_cast<float>(std::cos(angle)));
            sin.push_back(static_cast<float>(std::sin(angle)));
        }
    const Shape shape = {length, size / 2};
    return {Array::from(std::span<const float>(cos), shape),
            Array::from(std::span<const float>(sin), shape)};
}

std::vector<double> alibi_slopes(std::int64_t heads) {
    if (heads < 1) fail<InvalidError>("[alibi] heads: expected at least 1, got {}", heads);
    const auto lower = static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    std::vector<double> slopes;
    for (std::int64_t k = 0; k < heads; ++k) {
        const auto i = static_cast<double>(k);
        slopes.push_back(
            std::exp2(i < lower ? -8 * (i + 1) / lower : -8 * (2 * (i - lower) + 1) / (2 * lower)));
    }
    return slopes;
}

Array alibi(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t offset) {
    const std::vector<double> slopes = alibi_slopes(heads);
    if (queries < 0) fail<InvalidError>("[alibi] queries: expected at least 0, got {}", queries);
    if (keys < 0) fail<InvalidError>("[alibi] keys: expected at least 0, got {}", keys);
    if (offset < -1) fail<InvalidError>("[alibi] offset: expected at least -1, got {}", offset);
    const std::int64_t first = offset < 0 ? keys - queries : offset;
    std::vector<float> biases;
    for (const double slope : slopes)
        for (std::int64_t t = 0; t < queries; ++t)
            for (std::int64_t s = 0; s < keys; ++s)
                biases.push_back(
                    static_cast<float>(-slope * std::abs(static_cast<double>(first + t - s))));
    return Array::from(std::span<const float>(biases), {1, heads, queries, keys});
}

}  // namespace catena::functions
