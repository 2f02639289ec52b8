// Losses over many classes that look at some of them only.
#pragma once

#include "reductions.hpp"

namespace catena::plugins {

constexpr auto inputs_of_sampled() {
    return in(
        Port("x", "(N, size)"), Port("t", "labels (N,)").of("I").not_differentiable(),
        Port("W", "(classes, size)"),
        Port("samples", "other classes for each label: (N, number)").of("J").not_differentiable());
}
// Checks the shapes, and returns t and the samples as one array (N, 1 + number).
Var classes_of(const auto& g) {
    g.check_ndim(0, 2);
    const std::int64_t n = g.x(0).dim(0);
    g.check_shape(1, {n});
    g.check_ndim(3, 2);
    g.check_shape(3, {n, g.x(3).dim(1)});
    g.check_ndim(2, 2);
    g.check_shape(2, {g.x(2).dim(0), g.x(0).dim(1)});
    return concat({reshape(g.x(1), {n, 1}), cast(g.x(3), g.x(1).dtype())}, 1);
}
// The scores W[ids] x.
inline Var scores_of(const Var& x, const Var& W, const Var& ids) {
    return sum(take(W, ids) * reshape(x, {x.dim(0), 1, x.dim(1)}), {2});
}

struct BlackOut {
    static constexpr auto about =
        describe(
            "catena.black_out",
            "loss = -log p[t] - sum of log(1 - p[s]) over the samples s, with the softmax p of "
            "the scores W x of t and the samples, reduced\n\n"
            "(Ji et al., \"BlackOut: Speeding up Recurrent Neural Network Language Models With "
            "Very Large Vocabularies\", 2015, without the weights of the samples.)",
            inputs_of_sampled(), out("loss"), reduce_rows)
            .example("x=(3,4) t=(3)[0,4] W=(5,4) samples=(3,2)[0,4]")
            .example("x=(3,4) t=(3)[0,4] W=(5,4) samples=(3,2)[0,4] reduce=\"no\"");
    static Var compose(const auto& g) {
        const Var scores = scores_of(g.x(0), g.x(2), classes_of(g));
        const Var log_z = call<"catena.logsumexp">(
            {scores}, {set("axis", Ints(IntList{1})), set("keepdims", true)});
        const Var others = call<"catena.log1p">({-math::exp(slice(scores, 1, 1) - log_z)});
        return reduced(g, sum(log_z - slice(scores, 1, 0, 1), {1}) - sum(others, {1}));
    }
};

struct NegativeSampling {
    static constexpr const char* ways[] = {"sum", "no", nullptr};
    static constexpr auto about =
        describe(
            "catena.negative_sampling",
            "loss = -log sigmoid(W[t] x) - sum of log sigmoid(-W[s] x) over the samples s, "
            "reduced\n\nIt is 0 for the label -1. (Mikolov et al., \"Distributed "
            "Representations of Words and Phrases and their Compositionality\", 2013.)",
            inputs_of_sampled(), out("loss"),
            attr("reduce", "sum", "sum of the labels' losses, or no: all of them").one_of(ways))
            .example("x=(3,4) t=(3)[-1,4] W=(5,4) samples=(3,2)[0,4]")
            .example("x=(3,4) t=(3)[0,4] W=(5,4) samples=(3,2)[0,4] reduce=\"no\"");
    static Var compose(const auto& g) {
        const Var ids = classes_of(g), ignored = call<"catena.is_equal">({g.x(1), -1.0});
        const auto unless_ignored = [&](const Var& x) {
            return math::where(reshape(ignored, {ignored.dim(0), 1}), 0.0, x);
        };
        const Var scores = scores_of(unless_ignored(g.x(0)), g.x(2), unless_ignored(ids));
        const auto losses = [](const Var& x) { return sum(call<"catena.softplus">({x}), {1}); };
        const Var loss = losses(-slice(scores, 1, 0, 1)) + losses(slice(scores, 1, 1));
        return reduced(g, math::where(ignored, 0.0, loss));
    }
};

CATENA_FUNCTIONS(BlackOut, NegativeSampling);

}  // namespace catena::plugins
