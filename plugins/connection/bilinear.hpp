// Bilinear maps, and linear ones with random weights.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Input i with the axes after the first merged.
inline Var merged(const auto& g, std::size_t i) {
    g.check_least_ndim(i, 1);
    const Meta x = g.x_meta(i);
    return reshape(g.x(i), {x.dim(0), size_of(x.shape().subspan(1))});
}

struct Bilinear {
    static constexpr auto about =
        describe("catena.bilinear",
                 "y = the sums of e1[i] e2[j] W[i, j, k] for each sample and output k, plus "
                 "e1 V1 + e2 V2 + b",
                 in(Port("e1", "(N, ...), whose axes after the first are merged"),
                    Port("e2", "(N, ...), as e1"), Port("W", "(size of e1, size of e2, out)"),
                    Port("V1", "(size of e1, out); V1, V2 and b: all or none").optional(),
                    Port("V2", "(size of e2, out)").optional(), Port("b", "(out,)").optional()),
                 out(Port("y", "(N, out)")))
            .example("e1=(2,3) e2=(2,4) W=(3,4,2)")
            .example("e1=(2,3) e2=(2,2,2) W=(3,4,2) V1=(3,2) V2=(4,2) b=(2)");
    static Var compose(const auto& g) {
        const bool linear = g.has(5);
        g.check(g.has(3) == linear && g.has(4) == linear, "V1, V2, b", "all or none of them",
                "some", CATENA_E_INVALID);
        g.check_ndim(2, 3);
        const Var W = g.x(2), e1 = merged(g, 0), e2 = merged(g, 1);
        const std::int64_t n = e1.dim(1), m = e2.dim(1), outputs = W.dim(2), rows = e1.dim(0);
        List as_rows = list_of(g.x_meta(1).shape());
        as_rows[0] = rows;
        g.check_shape(1, as_rows);
        g.check_shape(2, {n, m, outputs});
        g.check_shape(3, {n, outputs});
        g.check_shape(4, {m, outputs});
        g.check_shape(5, {outputs});
        const Var pairs = reshape(e1, {rows, n, 1}) * reshape(e2, {rows, 1, m});
        const Var y = matmul(reshape(pairs, {rows, n * m}), reshape(W, {n * m, outputs}));
        return linear ? y + matmul(e1, g.x(3)) + matmul(e2, g.x(4)) + g.x(5) : y;
    }
};

struct SimplifiedDropconnect {
    static constexpr auto about =
        describe(
            "catena.simplified_dropconnect",
            "y = x W^T + b, with weights set to 0 at random, and the others scaled to keep the "
            "mean\n\n"
            "(Wan et al., \"Regularization of Neural Networks using DropConnect\", 2013, "
            "simplified: the outputs are not sampled.)",
            in(Port("x", "(N, ...); the axes after the first are merged"), Port("W", "(out, in)"),
               Port("b", "(out,)").optional(),
               Port("mask",
                    "1 for the weights to use, else 0: (N, out, in) or (out, in); missing: "
                    "drawn")
                   .of("M")
                   .optional()
                   .not_differentiable()),
            out(Port("y", "(N, out)")),
            attr("ratio", 0.5, "the probability of a weight to become 0, less than 1").range(0, 1),
            attr("train", true, "otherwise, all weights are used"),
            attr("use_batchwise_mask", true, "draws a mask for each sample"))
            .stochastic()
            .example("x=(2,3) W=(4,3) b=(4) mask=(2,4,3)[0,1]")
            .example("x=(2,3) W=(4,3) train=false")
            .example("x=(2,3) W=(4,3)");
    static Var compose(const auto& g) {
        g.check_ndim(1, 2);
        const Var x = merged(g, 0), W = g.x(1);
        const std::int64_t n = x.dim(0), outputs = W.dim(0), inputs = x.dim(1);
        g.check_shape(1, {outputs, inputs});
        g.check_shape(2, {outputs});
        const double ratio = g.template attr<"train">() ? g.template attr<"ratio">() : 0;
        g.check(ratio < 1, "ratio", "less than 1", ratio, CATENA_E_INVALID);
        List shape = {outputs, inputs};
        if (g.template attr<"use_batchwise_mask">()) shape.insert(shape.begin(), n);
        const auto drawn = [&] {
            const Var numbers = call<"catena.uniform">({}, {set("shape", Ints(shape))});
            return call<"catena.is_greater">({1 - ratio, numbers});
        };
        const Var mask = g.has(3) ? g.x(3) : drawn();
        const Var weights = W * (cast(mask, W.dtype()) * (1 / (1 - ratio)));
        const Var y = reshape(matmul(weights, reshape(x, {n, inputs, 1})), {n, outputs});
        return g.has(2) ? y + g.x(2) : y;
    }
};

CATENA_FUNCTIONS(Bilinear, SimplifiedDropconnect);

}  // namespace catena::plugins
