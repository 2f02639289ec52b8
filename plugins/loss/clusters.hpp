// Losses of clusters of pixels.
#pragma once

#include <catena/plugin/precision.hpp>

#include "reductions.hpp"

namespace catena::plugins {

struct DiscriminativeMarginBasedClusteringLoss {
    static constexpr auto about =
        describe(
            "catena.discriminative_margin_based_clustering_loss",
            "pulls the embeddings of a cluster together and pushes the clusters apart\n\n"
            "(De Brabandere et al., \"Semantic Instance Segmentation with a Discriminative Loss "
            "Function\", 2017.)",
            in(Port("embeddings", "(N, max_embedding_dim, H, W)"),
               Port("labels",
                    "the cluster of each pixel: (N, H, W), 1 to max_embedding_dim; others count "
                    "nowhere")
                   .of("I")
                   .not_differentiable()),
            out(Port("variance", "of distances from the means"), Port("distance", "between means"),
                Port("regularization", "of the means")),
            required<double>("delta_v", "distance from the mean up to which embeddings are close"),
            required<double>("delta_d", "half the distance from which means are apart"),
            required<std::int64_t>("max_embedding_dim",
                                   "number of clusters, and of elements of an embedding")
                .range(1, 0x1p15),
            attr("norm", 1, "the norm of the distances").range(1, 2),
            attr("alpha", 1.0, "the weight of variance"),
            attr("beta", 1.0, "the weight of distance"),
            attr("gamma", 0.001, "the weight of regularization"))
            .example(
                "embeddings=(2,2,2,3)[1,2] labels=(2,2,3)[0,2] delta_v=0.1 delta_d=9 "
                "max_embedding_dim=2 norm=2");

    static std::array<Var, 3> compose(const auto& g) {
        g.check_ndim(0, 4);
        const Var x = widened(g.x(0));
        const auto result = [&](const Var& y) { return in_dtype(y, g.x(0).dtype()); };
        const std::int64_t n = g.template attr<"max_embedding_dim">(), size = x.dim(0),
                           h = x.dim(2), w = x.dim(3);
        const auto order = static_cast<double>(g.template attr<"norm">());
        g.check_shape(0, {size, n, h, w});
        g.check_shape(1, {size, h, w});
        const auto squares_over = [](const Var& at, const Var& limit) {
            const Var over = call<"catena.relu">({at - limit});
            return over * over;
        };
        const Var clusters = reshape(arange(n, dtype_of<std::int64_t>(), 1), {n, 1, 1, 1});
        const Var inside = cast(g.x(1), dtype_of<std::int64_t>()) == clusters;
        const Var mask = reshape(cast(inside, x.dtype()), {n, size, 1, h, w});
        const Var counts = sum(mask, {2, 3, 4});
        const Var means = sum(x * mask, {3, 4}) / reshape(math::max(counts, 1.0), {n, size, 1});
        const Var from_means = norm((reshape(means, {n, size, n, 1, 1}) - x) * mask, order, {2});
        const Var variances =
            sum(squares_over(from_means, g.template attr<"delta_v">()), {1, 2, 3});
        List a, b;  // pairs of clusters
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = i + 1; j < n; ++j) {
                a.push_back(i);
                b.push_back(j);
            }
        const Var between = norm(take(means, integers(a)) - take(means, integers(b)), order, {2});
        const Var near = sum(squares_over(2 * g.template attr<"delta_d">(), between));
        const auto pairs = static_cast<double>(
            std::max<std::int64_t>(static_cast<std::int64_t>(a.size()) * size, 1));
        const auto clusters_of_all = static_cast<double>(n * size);
        return {result(sum(variances / math::max(sum(counts, {1}), 1.0)) *
                       (g.template attr<"alpha">() / static_cast<double>(n))),
                result(near * (g.template attr<"beta">() / pairs)),
                result(sum(norm(means, order, {1, 2})) *
                       (g.template attr<"gamma">() / clusters_of_all))};
    }
};

CATENA_FUNCTIONS(DiscriminativeMarginBasedClusteringLoss);

}  // namespace catena::plugins
