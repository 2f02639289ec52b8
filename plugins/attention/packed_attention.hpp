// Attention of sequences without padding, and its positions.
#pragma once

#include <catena/plugin/precision.hpp>

#include <bit>

#include "attention_case.hpp"

namespace catena::plugins {

struct PackedAttention {
    static constexpr auto about =
        describe("catena.packed_attention",
                 "y = attention within sequences that are stored one after the other\n\n"
                 "Sequence i has the tokens offsets[i] to offsets[i + 1]. "
                 "catena.scaled_dot_product_attention is called for each; for padded sequences, "
                 "one call of it with lengths suffices.",
                 in(Port("q", "(total, H, D)"), Port("k", "(total, Hk, D)"),
                    Port("v", "(total, Hk, E)")),
                 out(Port("y", "(total, H, E)")),
                 required<Ints>("offsets", "where sequences begin, and the end of the last one"),
                 attr("causal", false, "a token does not see later ones"), attention_scale,
                 attention_dropout, attention_window)
            .stochastic()
            .example("q=(5,2,4) k=(5,1,4) v=(5,1,3) offsets=[0,2,5] causal=true")
            .example("q=(5,2,4) k=(5,2,4) v=(5,2,3) offsets=[0,5] scale=0.5 dropout=0.25");
    static Var compose(const auto& g) {
        const std::int64_t total = g.x(0).ndim() > 0 ? g.x(0).dim(0) : 0;
        for (std::size_t i = 0; i < 3; ++i) {
            g.check_ndim(i, 3);
            const Meta x = g.x_meta(i);
            g.check(x.dim(0) == total, "q, k, v", "arrays of " + text_of(total) + " tokens",
                    x.shape());
        }
        const Ints offsets = g.template attr<"offsets">();
        g.check(offsets.size() >= 2 && offsets.front() == 0 && offsets.back() == total &&
                    std::ranges::is_sorted(offsets),
                "offsets", "numbers from 0 to " + text_of(total) + " in their order", offsets);
        std::vector<Var> results;
        for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
            const auto tokens = [&](std::size_t input) {
                return expand_dims(slice(g.x(input), 0, offsets[i], offsets[i + 1]), {0});
            };
            const Var none = Var::missing();
            results.push_back(call<"catena.scaled_dot_product_attention">(
                {tokens(0), tokens(1), tokens(2), none, none, none},
                {g.same("causal"), g.same("scale"), g.same("dropout"), g.same("window"),
                 set("layout", "BTHD")}));
        }
        return squeeze(concat(results, 1), {0});
    }
};

struct Alibi {
    static constexpr auto about =
        describe("catena.alibi",
                 "y = -slope |t + offset - s|, a bias of attention for queries t and keys s\n\n"
                 "The slopes of n heads are 2^(-8 k / n) for k = 1 to n if n is a power of two; "
                 "else those of the next lower power, then every second one of those of the next "
                 "higher power. (Press et al., \"Train Short, Test Long: Attention with Linear "
                 "Biases Enables Input Length Extrapolation\", ICLR 2022.)",
                 in(), out(Port("y", "(1, heads, queries, keys)")),
                 required<std::int64_t>("heads", "the number of heads").range(1, 1 << 20),
                 required<std::int64_t>("queries", "the number of queries").range(0, 0x1p40),
                 required<std::int64_t>("keys", "the number of keys").range(0, 0x1p40),
                 attr("offset", 0, "the position of the first query; -1: keys - queries")
                     .range(-1, 0x1p40),
                 attr("dtype", dtype_of<float>(), "the dtype of y: a floating one"))
            .not_differentiable()
            .example("heads=2 queries=2 keys=3 offset=-1")
            .example("heads=3 queries=1 keys=4 offset=3 dtype=\"float64\"");
    static Var compose(const auto& g) {
        const std::int64_t heads = g.template attr<"heads">(),
                           queries = g.template attr<"queries">(), keys = g.template attr<"keys">(),
                           offset = g.template attr<"offset">();
        const catena_dtype dtype = floating_dtype(g);
        const catena_dtype wide = is_half(dtype) ? dtype_of<float>() : dtype;
        const auto lower = static_cast<double>(std::bit_floor(static_cast<std::uint64_t>(heads)));
        const Var i = arange(heads, dtype_of<double>());
        const Var power = math::where(i < lower, (i + 1.0) * (-8 / lower),
                                      ((i - lower) * 2.0 + 1.0) * (-4 / lower));
        const Var slopes = reshape(in_dtype(math::pow(2.0, power), wide), {heads, 1, 1});
        const std::int64_t first = offset < 0 ? keys - queries : offset;
        const Var t = reshape(arange(queries, wide, first), {queries, 1});
        const Var bias = -slopes * math::abs(t - arange(keys, wide));
        return reshape(in_dtype(bias, dtype), {1, heads, queries, keys});
    }
};

CATENA_FUNCTIONS(PackedAttention, Alibi);

}  // namespace catena::plugins
