// float16 and bfloat16: conversion of single elements, and loops with the CPU's conversion
// instructions. Results are rounded to nearest even; every instruction set gives the same bits. And
// the rows of dtypes with half precision, which are derived from those with float32.
#pragma once

#include <algorithm>
#include <array>

#include "catena/abi/half.h"
#include "catena/plugin/describe.hpp"
#include "catena/plugin/isa.hpp"

namespace catena::plugin {

constexpr float to_float(Float16 h) { return catena_from_float16(h.bits); }
constexpr float to_float(BFloat16 h) { return catena_from_bfloat16(h.bits); }
constexpr Float16 to_float16(float x) { return {catena_to_float16(x)}; }
constexpr BFloat16 to_bfloat16(float x) { return {catena_to_bfloat16(x)}; }
template <class Half>
constexpr Half to_half(float x) {
    if constexpr (std::is_same_v<Half, Float16>) return to_float16(x);
    else return to_bfloat16(x);
}

// Converts n elements with an instruction set. One of From and To is float, the other a half.
template <Isa isa, class From, class To>
void convert_halves(const From* from, To* to, std::int64_t n);

namespace detail {

// The rows of dtypes in which one of the halves replaces the floats in `mask`.
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
    return (std::ranges::any_of(R::dtypes, is_half) || ...);
}
// Returns the positions of the floats in a row that become half precision, as bits.
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

}  // namespace detail
}  // namespace catena::plugin
