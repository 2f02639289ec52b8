// Hierarchical softmax over a binary tree: the cost per label is its depth, not the label count.
#pragma once

#include <catena/plugin/precision.hpp>
#include <catena/plugin/rows.hpp>

#include "label_tree.hpp"

namespace catena::plugins {

using TreeTypes = Rows<Row<float, std::int32_t>, Row<float, std::int64_t>,
                       Row<double, std::int32_t>, Row<double, std::int64_t>>;
inline constexpr Attribute tree_attribute = required<const char*>(
    "tree", "JSON: a label, or [left, right], nested: \"[[0, 1], 2]\"; each label once");

auto tree_of(const auto& call) {
    return tree_of(call.raw().function->name, call.template attr<"tree">());
}

// The leaf of label i. Throws CATENA_E_VALUE if the label is not in the tree.
template <class I>
const LabelTree::Leaf* leaf_of(const auto& call, const LabelTree& tree, Tensor<const I> t,
                               std::int64_t i) {
    const LabelTree::Leaf* const leaf = tree.find(t[i]);
    if (leaf == nullptr) [[unlikely]]
        call.fail(CATENA_E_VALUE, ("t[" + std::to_string(i) + "]").c_str(), "a label of the tree",
                  t[i]);
    return leaf;
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
    using types = TreeTypes;
    static constexpr auto retain_x = ports(0, 1, 2);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        check_shapes(s, x, tree_of(about.name, s.template attr<"tree">())->nodes());
        s.y(0, {});
    }
    static void check_shapes(const auto& s, Shape x, std::int64_t nodes) {
        s.check_ndim(0, 2);
        s.check_shape(1, x.first(1));
        s.check_shape(2, {nodes, x[1]});
    }
    // Gathers the rows of W for the nodes above each label, padded to the depth of the tree.
    static Var compose(const auto& g) {
        const Meta samples = g.x_meta(0);
        check_shapes(g, samples.shape(), tree_of(g)->nodes());
        const std::int64_t n = samples.dim(0), size = samples.dim(1);
        const auto [nodes, given] =
            call_all<"catena.tree_ways", 2>({g.x(0), g.x(1)}, {g.same("tree")});
        const std::int64_t nothing = -1;
        const Var w =
            call<"catena.embed_id">({nodes, g.x(2)}, {set("ignore_label", Ints(&nothing, 1))});
        const Var codes = widened(given), x = reshape(widened(g.x(0)), {n, 1, size});
        const Var losses = call<"catena.softplus">({-codes * sum(widened(w) * x, {2})});
        return in_dtype(sum(math::where(codes == 0.0, 0.0, losses)), samples.dtype);
    }

    // Scratch memory holds the samples' leaves and losses; in backward, leaves and factors.
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        const std::int64_t n = call.template x<T>(0).dim(0);
        std::int64_t bytes = n * static_cast<std::int64_t>(sizeof(double) + sizeof(void*));
        if (call.raw().phase == CATENA_PHASE_BACKWARD) {
            const auto tree = tree_of(call);
            bytes +=
                samples_at_once(*tree, n) * tree->depth() * static_cast<std::int64_t>(sizeof(T));
        }
        plan.scratch_bytes = static_cast<std::uint64_t>(bytes);
    }

    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto w = call.template x<T>(2);
        const auto tree = tree_of(call);
        const std::int64_t n = x.dim(0);
        const std::int64_t size = x.dim(1);
        auto** const leaves = call.template scratch<const LabelTree::Leaf*>();
        auto* const losses = reinterpret_cast<double*>(leaves + n);
        for (std::int64_t i = 0; i < n; ++i) leaves[i] = leaf_of(call, *tree, t, i);
        call.parallel(
            n, work(*tree, size), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                for (std::int64_t i = begin; i < end; ++i) {
                    double loss = 0;
                    tree->walk(*leaves[i], [&](std::int64_t node, std::int32_t code) CATENA_LAMBDA {
                        const double z = -code * dot(w.data + node * size, x.data + i * size, size);
                        loss += math::max(z, 0.0) + math::log(1.0 + math::exp(-math::abs(z)));
                    });
                    losses[i] = loss;
                }
            });
        store(call.template y<T>(0)[0], call.adds(0), static_cast<T>(sum_of<double>(losses, n)));
    }

    template <class T, class I>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto w = call.template x<T>(2);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(2);
        const auto tree = tree_of(call);
        const std::int64_t n = x.dim(0);
        const std::int64_t size = x.dim(1);
        const std::int64_t depth = tree->depth();
        if (gx && !call.adds(0)) std::fill_n(gx.data, gx.size(), T(0));
        if (gw && !call.adds(2)) std::fill_n(gw.data, gw.size(), T(0));
        auto** const leaves = call.template scratch<const LabelTree::Leaf*>();
        auto* const factors = reinterpret_cast<T*>(leaves + 2 * n);
        for (std::int64_t i = 0; i < n; ++i) leaves[i] = leaf_of(call, *tree, t, i);
        const std::int64_t most = samples_at_once(*tree, n);
        for (std::int64_t first = 0; first < n; first += most) {
            const std::int64_t count = std::min(most, n - first);
            auto down = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                for (std::int64_t i = begin; i < end; ++i) {
                    const T* const sample = x.data + (first + i) * size;
                    T* factor = factors + i * depth;
                    tree->walk(*leaves[first + i],
                               [&](std::int64_t node, std::int32_t code) CATENA_LAMBDA {
                                   const T* const row = w.data + node * size;
                                   const double z = -code * dot(row, sample, size);
                                   *factor = static_cast<T>(-code * math::sigmoid(z)) * gy[0];
                                   if (gx) add(row, *factor, gx.data + (first + i) * size, size);
                                   ++factor;
                               });
                }
            };
            call.parallel(count, 2 * work(*tree, size), down);
            if (!gw) continue;
            // Samples share rows of W, so threads divide its columns.
            constexpr std::int64_t strip = 64;
            auto across = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                const std::int64_t left = begin * strip;
                const std::int64_t width = std::min(end * strip, size) - left;
                for (std::int64_t i = 0; i < count; ++i) {
                    const T* const sample = x.data + (first + i) * size + left;
                    const T* factor = factors + i * depth;
                    tree->walk(*leaves[first + i],
                               [&](std::int64_t node, std::int32_t) CATENA_LAMBDA {
                                   add(sample, *factor++, gw.data + node * size + left, width);
                               });
                }
            };
            call.parallel((size + strip - 1) / strip, count * work(*tree, std::min(strip, size)),
                          across);
        }
    }

private:
    // Returns the batch size, at least 1, that limits the gradient factors of a batch to 2^18.
    static std::int64_t samples_at_once(const LabelTree& tree, std::int64_t n) {
        const std::int64_t depth = std::max<std::int64_t>(tree.depth(), 1);
        return std::max<std::int64_t>(std::min(n, (std::int64_t{1} << 18) / depth), 1);
    }
    // Returns a sample's cost in additions. Labels of real trees are seldom deeper than 24.
    static std::int64_t work(const LabelTree& tree, std::int64_t size) {
        return (size + 16) * std::clamp<std::int64_t>(tree.depth(), 1, 24);
    }
    template <class T>
    CATENA_KERNEL static double dot(const T* a, const T* b, std::int64_t n) {
        return static_cast<double>(
            sum_lanes<T>(n, [&](std::int64_t k) CATENA_LAMBDA { return a[k] * b[k]; }));
    }
    template <class T>
    CATENA_KERNEL static void add(const T* x, T factor, T* y, std::int64_t n) {
        CATENA_LOOP
        for (std::int64_t k = 0; k < n; ++k) y[k] += factor * x[k];
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
    using types = TreeTypes;
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
            std::int64_t p = i * depth;
            tree->walk(*leaf_of(call, *tree, t, i), [&](std::int64_t node, std::int32_t code) {
                nodes[p] = static_cast<I>(node);
                store(codes[p++], call.adds(1), static_cast<T>(code));
            });
            for (; p < (i + 1) * depth; ++p) {
                nodes[p] = -1;
                store(codes[p], call.adds(1), T(0));
            }
        }
    }
};

CATENA_FUNCTIONS(BinaryHierarchicalSoftmax, TreeWays);

}  // namespace catena::plugins
