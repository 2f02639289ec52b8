// Positions for attention: tables for F::rotary_embedding(), biases for
// F::scaled_dot_product_attention(); and attention of packed sequences.
#pragma once

#include <catena/core/variable.hpp>

#include <cstdint>
#include <span>
#include <vector>

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

// A slope for each head: 2^(-8 k / n) for k = 1 .. n if n, the number of heads, is a power of two;
// else those for the next lower power, then every second one of those for the next higher power.
// (Press and others, "Train Short, Test Long: Attention with Linear Biases", ICLR 2022.)
std::vector<double> alibi_slopes(std::int64_t heads);

// A mask (1, heads, queries, keys) of a floating dtype: -slope * distance, where query t is at
// t + offset. offset=-1 means keys - queries, as for attention. device: by default the current one.
// Throws InvalidError if there is no head, or another number is negative; DtypeError for other
// dtypes.
Array alibi(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t offset = 0,
            Dtype dtype = Dtype::float32, Device device = {});

// Attention within sequences of different lengths that are stored one after the other, without
// padding: sequence i has the tokens offsets[i] to offsets[i + 1] of q (total, H, D), k (total, Hk,
// D) and v (total, Hk, E). Returns (total, H, E). The other arguments are those of
// F::scaled_dot_product_attention(), which is called for each sequence; for padded sequences, one
// call of it with `lengths` suffices. Throws ShapeError unless offsets begin with 0, do not
// decrease and end with total.
Variable packed_attention(const Variable& q, const Variable& k, const Variable& v,
                          std::span<const std::int64_t> offsets, bool causal = false,
                          double scale = 0, double dropout = 0, std::int64_t window = 0);

}  // namespace catena::functions
