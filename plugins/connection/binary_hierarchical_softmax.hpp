// Hierarchical softmax over a binary tree: the cost per label is its depth, not the label count.
#pragma once

#include <catena/plugin/precision.hpp>

#include "label_tree.hpp"

namespace catena::plugins {

inline constexpr Attribute tree_attribute = required<const char*>(
    "tree", "JSON: a label, or [left, right], nested: \"[[0, 1], 2]\"; each label once");

auto tree_of(const auto& call) {
    return tree_of(call.raw().function->name, call.template attr<"tree">());
}

struct BinaryHierarchicalSoftmax {
    static constexpr auto about =
        describe("catena.binary_hierarchical_softmax",
                 "loss = sum of log(1 + e^(-code W[node] . x)) over the nodes above each label\n\n"
                 "The code is -1 if the path to the label turns left, +1 if it turns right; inner "
                 "nodes are numbered in pre-order. (This follows Chainer's documentation; "
                 "Chainer's code uses the opposite sign, so its W is the negative of this one.) "
                 "The loss is summed over the samples. (Morin and Bengio, \"Hierarchical "
                 "Probabilistic Neural Network Language Model\", 2005.)",
                 in(Port("x", "(N, size)"), Port("t", "labels (N,)").of("I").not_differentiable(),
                    Port("W", "(inner nodes, size)")),
                 out(Port("loss", "()")), tree_attribute)
            .example("x=(3,2) t=(3)[0,4] W=(4,2) tree=\"[[0,1],[2,[3,4]]]\"")
            .example("x=(2,3) t=(2) W=(1,3) tree=\"[1,0]\"");

    // Gathers the rows of W for the nodes above each label, padded to the depth of the tree.
    static Var compose(const auto& g) {
        g.check_ndim(0, 2);
        const Meta samples = g.x_meta(0);
        const std::int64_t n = samples.dim(0), size = samples.dim(1);
        g.check_shape(1, {n});
        g.check_shape(2, {tree_of(g)->nodes(), size});
        const auto [nodes, given] =
            call_all<"catena.tree_ways", 2>({g.x(0), g.x(1)}, {g.same("tree")});
        const std::int64_t nothing = -1;
        const Var w =
            call<"catena.embed_id">({nodes, g.x(2)}, {set("ignore_label", Ints(&nothing, 1))});
        const Var codes = widened(given), x = reshape(widened(g.x(0)), {n, 1, size});
        const Var losses = call<"catena.softplus">({-codes * sum(widened(w) * x, {2})});
        return in_dtype(sum(math::where(codes == 0.0, 0.0, losses)), samples.dtype);
    }
};

// The nodes above each label and their codes.
struct TreeWays {
    static constexpr auto about =
        describe("catena.tree_ways",
                 "The inner nodes above each label and the codes there, the root last; -1 and 0 "
                 "after that",
                 in(Port("x", "(N, size)"), Port("t", "labels (N,)").of("I").not_differentiable()),
                 out(Port("nodes", "(N, depth)").of("I"), Port("codes", "(N, depth)")),
                 tree_attribute)
            .not_differentiable()
            .internal()
            .example("x=(3,2) t=(3)[0,4] tree=\"[[0,1],[2,[3,4]]]\"");
    using types = Rows<Row<float, std::int32_t>, Row<float, std::int64_t>,
                       Row<double, std::int32_t>, Row<double, std::int64_t>>;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        s.check_ndim(0, 2);
        s.check_shape(1, s.x(0).first(1));
        const auto tree = tree_of(about.name, s.template attr<"tree">());
        // At least 1, because a label that is not in the tree needs an entry.
        const std::int64_t shape[] = {s.x(0)[0], std::max<std::int64_t>(tree->depth(), 1)};
        s.y(0, shape, s.dtype(1));
        s.y(1, shape);
    }
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto t = call.template x<I>(1);
        const auto nodes = call.template y<I>(0);
        const auto codes = call.template y<T>(1);
        const auto tree = tree_of(call);
        const std::int64_t depth = nodes.dim(1);
        for (std::int64_t i = 0; i < t.size(); ++i) {
            const LabelTree::Leaf* const leaf = tree->find(t[i]);
            if (leaf == nullptr) [[unlikely]]
                call.fail(CATENA_E_VALUE, ("t[" + std::to_string(i) + "]").c_str(),
                          "a label of the tree", t[i]);
            LabelTree::Link link = leaf->link;
            for (std::int64_t p = i * depth; p < (i + 1) * depth; ++p) {
                nodes[p] = static_cast<I>(link.parent);
                store(codes[p], call.adds(1), static_cast<T>(link.code));
                link = tree->above(link);
            }
        }
    }
};

CATENA_FUNCTIONS(BinaryHierarchicalSoftmax, TreeWays);

}  // namespace catena::plugins
