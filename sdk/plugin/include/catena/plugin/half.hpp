// float16 and bfloat16: conversion of single elements, and loops with the CPU's conversion
// instructions. Results are rounded to nearest even; every instruction set gives the same bits.
#pragma once

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

// to[0 .. n) = from[0 .. n), with the instructions of an instruction set. One of From and To is
// float, the other a half.
template <Isa isa, class From, class To>
void convert_halves(const From* from, To* to, std::int64_t n);

}  // namespace catena::plugin
