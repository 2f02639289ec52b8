// The nodes above the labels of hierarchical softmax, on CUDA. A label outside the tree makes the loss
// and its row of x's gradient NaN, not W's gradient: see embed_id.cuh.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "binary_hierarchical_softmax.hpp"
#include "label_tree.cuh"

namespace catena::plugins {

// Writes the inner nodes above each label, the root last, and their codes; pads with -1 and 0. For
// a label that is not in the tree, the first entries are TreeTables::wrong and NaN.
template <class I, class C>
struct Ways {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        LabelTree::Link link = tree.find(labels[i]);
        for (std::int64_t k = i * depth; k < (i + 1) * depth; ++k) {
            nodes[k] = static_cast<I>(link.parent);
            const float code = link.parent == TreeTables::wrong
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : static_cast<float>(link.code);
            cuda::store(codes[k], add != 0, code);
            link = link.parent >= 0 ? tree.nodes[link.parent] : LabelTree::Link{-1, 0};
        }
    }
    TreeTables tree;
    const I* labels;
    I* nodes;
    C* codes;
    std::int64_t depth, add;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::TreeWays> {
    template <class, class>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes =
            catena::plugins::TreesOnDevice::scratch(call.raw().device_id, tree_of(call));
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto t = call.template x<I>(1);
        const auto nodes = call.template y<I>(0);
        if (nodes.size() == 0) return;
        const TreeTables tables =
            TreesOnDevice::tables(call.queue(), tree_of(call), call.template scratch<char>());
        const Ways<I, T> ways = {tables,       t.data,      nodes.data, call.template y<T>(1).data,
                                 nodes.dim(1), call.adds(1)};
        each(call.queue(), t.size(), ways);
    }
};
