// Rows of dtypes with half precision, derived from those with float32.
#pragma once

#include <array>

#include "catena/plugin/describe.hpp"

namespace catena::plugin::detail {

// A row of dtypes with each half in turn in place of the floats in `mask`.
template <class R, unsigned mask>
struct HalfRows {
    static constexpr std::size_t n = R::n;
    static constexpr auto dtypes = [] {
        std::array<catena_dtype, Halves::n * n> rows{};
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const catena_dtype own = R::dtypes[i % n];
            const bool half = (mask >> (i % n) & 1) != 0 && same(own, dtype_of<float>());
            rows[i] = half ? Halves::dtypes[i / n] : own;
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
