// Positions for attention: tables for F::rotary_embedding().
#pragma once

#include <catena/core/array.hpp>

#include <cstdint>

namespace catena::functions {

struct RotaryTables {
    Array cos, sin;
};
// Slower rotation, for texts longer than those of training: the frequency f = base^(-2 i / size)
// becomes f (s + (1 - s) / factor), where s is 1 for f above 2 pi high / context, 0 below
// 2 pi low / context, and linear between them. context=0 divides all frequencies by factor.
// (Grattafiori and others, "The Llama 3 Herd of Models", 2024; for all frequencies: Chen and
// others, "Extending Context Window of Large Language Models via Positional Interpolation", 2023.)
struct RotaryScaling {
    double factor = 1;
    double low = 1, high = 4;
    double context = 0;  // tokens of the texts of training

    bool operator==(const RotaryScaling&) const = default;
};
// The cosines and sines of p base^(-2 i / size) for positions p < length and i < size / 2, with
// scaled frequencies: arrays (length, size / 2) of a floating dtype, rounded from float64. size:
// the number of elements that are rotated. device: by default the current one. Throws InvalidError
// if size is odd, an argument is not positive, or high <= low; DtypeError for other dtypes.
RotaryTables rotary_tables(std::int64_t length, std::int64_t size, double base = 10000,
                           Dtype dtype = Dtype::float32, Device device = {},
                           const RotaryScaling& scaling = {});

}  // namespace catena::functions
