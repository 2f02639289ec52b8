// Positions for attention, and attention of packed sequences.
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/functions.hpp>
#include <catena/functions/attention.hpp>
#include <catena/functions/creation.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
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

std::vector<double> alibi_slopes(std::int64_t heads) {
    if (heads < 1 || heads > most_on_host)
        fail<InvalidError>("[alibi] heads: expected 1 to {}, got {}", most_on_host, heads);
    const auto lower = static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(heads)));
    std::vector<double> slopes;
    for (std::int64_t k = 0; k < heads; ++k) {
        const auto i = static_cast<double>(k);
        slopes.push_back(
            std::exp2(i < lower ? -8 * (i + 1) / lower : -8 * (2 * (i - lower) + 1) / (2 * lower)));
    }
    return slopes;
}

Array alibi(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t offset,
            Dtype dtype, Device device) {
    const std::vector<double> slopes = alibi_slopes(heads);
    if (queries < 0) fail<InvalidError>("[alibi] queries: expected at least 0, got {}", queries);
    if (keys < 0) fail<InvalidError>("[alibi] keys: expected at least 0, got {}", keys);
    if (offset < -1) fail<InvalidError>("[alibi] offset: expected at least -1, got {}", offset);
    expect_floating("alibi", dtype);
    const Dtype wide = item_size(dtype) == 2 ? Dtype::float32 : dtype;
    const std::int64_t first = offset < 0 ? keys - queries : offset;
    const Array t = arange(first, first + queries, 1, wide, device).reshape({queries, 1});
    const Array distance = abs(t - arange(keys, wide, device));
    const Array slope = Array::from(slopes, {heads, 1, 1}, device).astype(wide);
    return (-slope * distance).astype(dtype).reshape({1, heads, queries, keys});
}

Variable packed_attention(const Variable& q, const Variable& k, const Variable& v,
                          std::span<const std::int64_t> offsets, bool causal, double scale,
                          double dropout, std::int64_t window) {
    for (const Variable* x : {&q, &k, &v})
        if (x->ndim() != 3 || x->shape()[0] != q.shape()[0])
            fail<ShapeError>(
                "[packed_attention] q, k, v: expected (total, heads, size) with one total, got {}, "
                "{} and {}",
                to_string(q.shape()), to_string(k.shape()), to_string(v.shape()));
    if (offsets.size() < 2 || offsets.front() != 0 || offsets.back() != q.shape()[0] ||
        !std::ranges::is_sorted(offsets))
        fail<ShapeError>(
            "[packed_attention] offsets: expected numbers from 0 to {} in their order, got ({})",
            q.shape()[0], fmt::join(offsets, ", "));
    const auto sequences = [&](const Variable& x) {
        std::vector<Variable> parts =
            split_axis(x, Ints(offsets.subspan(1, offsets.size() - 2)), 0);
        for (Variable& part : parts) {
            const Shape shape = part.shape();
            part = reshape(part, {1, shape[0], shape[1], shape[2]});
        }
        return parts;
    };
    const auto queries = sequences(q), keys = sequences(k), values = sequences(v);
    std::vector<Variable> results;
    for (std::size_t i = 0; i < queries.size(); ++i)
        results.push_back(scaled_dot_product_attention(queries[i], keys[i], values[i], {}, {}, {},
                                                       causal, scale, dropout, window, 0, "BTHD"));
    return reshape(concat(results, 1), {q.shape()[0], q.shape()[1], v.shape()[2]});
}

}  // namespace catena::functions
