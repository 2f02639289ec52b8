// Rows of dtypes with half precision, derived from those with float32.
#pragma once

#include <array>

#include "catena/plugin/describe.hpp"

namespace catena::plugin::detail {

// A row with float16, then with bfloat16, instead of the floats in `mask`.
template <class R, unsigned mask>
struct HalfRows {
    static constexpr std::size_t n = R::n;
    static constexpr auto dtypes = [] {
        std::array<catena_dtype, 2 * n> rows{};
        for (std::size_t i = 0; i < n; ++i) {
            const bool half = (mask >> i & 1) != 0 && same(R::dtypes[i], dtype_of<float>());
            rows[i] = half ? dtype_of<Float16>() : R::dtypes[i];
            rows[n + i] = half ? dtype_of<BFloat16>() : R::dtypes[i];
        }
        return rows;
    }();
};

template <class... R>
consteval bool has_halves(Rows<R...>) {
    bool found = false;
    const auto look = [&](const auto& row) {
        for (const catena_dtype& d : row) found = found || is_half(d);
    };
    (look(R::dtypes), ...);
    return found;
}
// The floats in a row that become half precision, as bits.
template <class F, class R>
consteval unsigned halves_of() {
    unsigned wanted = ~0u;
    if constexpr (requires { F::widened; }) wanted = F::widened;
    unsigned mask = 0;
    for (std::size_t i = 0; i < R::n; ++i)
        if (same(R::dtypes[i], dtype_of<float>()) && (wanted >> i & 1) != 0) {
            mask |= 1u << i;
            if (wanted == ~0u) break;
        }
    return mask;
}

}  // namespace catena::plugin::detail
