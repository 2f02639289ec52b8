// Hierarchical softmax over a binary tree, on CUDA: a pair is a sample and an inner node above its
// label. A label outside the tree makes the loss and its row of x's gradient NaN, not W's gradient.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "binary_hierarchical_softmax.hpp"
#include "label_tree.cuh"
#include "rows_by_id.cuh"

namespace catena::plugins {

// Writes the inner nodes above each label, the root last, and their codes; pads with -1 and 0. For
// a label that is not in the tree, the first entries are TreeTables::wrong and NaN.
template <class I, class N, class C>
struct Ways {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        LabelTree::Link link = tree.find(labels[i]);
        for (std::int64_t k = i * depth; k < (i + 1) * depth; ++k) {
            nodes[k] = static_cast<N>(link.parent);
            const float code = link.parent == TreeTables::wrong
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : static_cast<float>(link.code);
            cuda::store(codes[k], add != 0, code);
            link = link.parent >= 0 ? tree.nodes[link.parent] : LabelTree::Link{-1, 0};
        }
    }
    TreeTables tree;
    const I* labels;
    N* nodes;
    C* codes;
    std::int64_t depth, add;
};

// Arguments of pairs_kernel(): `lanes` threads, a power of two up to 32, compute the dot product of
// a pair, and from it the pair's loss, or its factor of the gradient, which replaces the code.
template <class T>
struct NodePairs {
    const T* x;
    const T* w;
    const std::int32_t* nodes;
    cuda::Compute<T>* codes;
    std::int64_t n, depth, size, lanes;
    const T* gy;
    double* losses;  // null: compute factors
};
template <class T>
__global__ void __launch_bounds__(cuda::block)
    pairs_kernel(const __grid_constant__ NodePairs<T> p) {
    using C = cuda::Compute<T>;
    const int lanes = static_cast<int>(p.lanes), thread = static_cast<int>(threadIdx.x);
    const int lane = thread % lanes;
    const std::int64_t k = std::int64_t{blockIdx.x} * (cuda::block / lanes) + thread / lanes;
    const std::int64_t node = k < p.n ? p.nodes[k] : -1;
    const T* const x = p.x + k / p.depth * p.size;
    const T* const w = p.w + node * p.size;
    C own = 0;
    for (std::int64_t j = lane; node >= 0 && j < p.size; j += lanes)
        own += cuda::load_as<C>(x[j]) * cuda::load_as<C>(w[j]);
    const C dot = cuda::join_lanes(own, lane, lanes, 1, std::plus());
    if (lane != 0 || k >= p.n) return;
    // A pair without a node has the code 0 or NaN, which is also its loss and factor.
    const auto code = static_cast<double>(p.codes[k]);
    const double z = -code * static_cast<double>(dot);
    if (p.losses != nullptr)
        p.losses[k] =
            node < 0 ? code : math::max(z, 0.0) + math::log(1.0 + math::exp(-math::abs(z)));
    else if (node >= 0)
        p.codes[k] = static_cast<C>(-code * math::sigmoid(z)) * cuda::load_as<C>(*p.gy);
}

// gx of a sample = sum of factor * row of W over its pairs.
template <class T>
struct SampleGradients {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t first = i / size * depth;
        C sum = 0;
        for (std::int64_t k = first; k < first + depth && nodes[k] != -1; ++k)
            sum += factors[k] *
                   (nodes[k] >= 0 ? cuda::load_as<C>(w[nodes[k] * size + i % size]) : C(0));
        cuda::store(gx[i], add != 0, sum);
    }
    const T* w;
    const std::int32_t* nodes;
    const C* factors;
    T* gx;
    std::int64_t depth, size, add;
};

// The number of pairs of a call, and its arrays in scratch memory.
template <class T>
struct PairsInScratch {
    PairsInScratch(const catena_call& call, const LabelTree& tree, void* scratch = nullptr)
        : depth(std::max<std::int64_t>(tree.depth(), 1)),  // a wrong label needs an entry
          n(shape_of(*call.x[0])[0] * depth) {
        Blocks blocks(scratch);
        nodes = blocks.take<std::int32_t>(n);
        codes = blocks.take<cuda::Compute<T>>(n);
        if (call.phase == CATENA_PHASE_FORWARD) {
            losses = blocks.take<double>(n);
            sums = blocks.take<char>(static_cast<std::int64_t>(
                cuda::sum_scratch<double>(Shape(&n, 1), cuda::every_axis)));
        } else {
            keys = blocks.take<std::uint64_t>(2 * n);
        }
        bytes = static_cast<std::uint64_t>(blocks.bytes());
        if (scratch != nullptr) tables = static_cast<char*>(scratch) + bytes;
    }

    std::int64_t depth, n;
    std::uint64_t bytes;
    std::int32_t* nodes;
    cuda::Compute<T>* codes;
    double* losses = nullptr;
    char* sums = nullptr;
    std::uint64_t* keys = nullptr;
    char* tables = nullptr;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BinaryHierarchicalSoftmax> {
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        const auto tree = tree_of(call);
        plan.scratch_bytes = Pairs<T>(call.raw(), *tree).bytes +
                             catena::plugins::TreesOnDevice::scratch(call.raw().device_id, tree);
    }
    template <class T, class I>
    static void forward(const auto& call) {
        const Pairs<T> pairs = work<T, I>(call, nullptr);
        sum(call.queue(), Tensor<const double>{pairs.losses, Shape(&pairs.n, 1)}, every_axis,
            call.template y<T>(0).data, call.adds(0), pairs.sums);
    }
    template <class T, class I>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(2);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(2);
        if (gw && !call.adds(2)) call.zero(gw);
        const Pairs<T> pairs = work<T, I>(call, gy.data);
        if (gx)
            each(call.queue(), gx.size(),
                 SampleGradients<T>{w.data, pairs.nodes, pairs.codes, gx.data, pairs.depth,
                                    w.dim(1), call.adds(0)});
        if (gw)
            cuda::sum_rows_on_device<T>(
                call.queue(), id_list(static_cast<const std::int32_t*>(pairs.nodes), w.dim(0)),
                {.n = pairs.n,
                 .n_rows = w.dim(0),
                 .size = w.dim(1),
                 .rows = x.data,
                 .factors = pairs.codes,
                 .each = pairs.depth,
                 .table = gw.data,
                 .add = call.adds(2)},
                pairs.keys);
    }

private:
    template <class T>
    using Pairs = catena::plugins::PairsInScratch<T>;

    // Computes the pairs of all samples, then the pairs' losses (forward) or gradient factors.
    template <class T, class I>
    static Pairs<T> work(const auto& call, const T* gy) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto tree = tree_of(call);
        const Pairs<T> pairs(call.raw(), *tree, call.template scratch<void>());
        const TreeTables tables = TreesOnDevice::tables(call.queue(), tree, pairs.tables);
        const Ways<I, std::int32_t, Compute<T>> ways = {
            tables, call.template x<I>(1).data, pairs.nodes, pairs.codes, pairs.depth, 0};
        each(call.queue(), x.dim(0), ways);
        const std::int64_t lanes = ceil2(std::clamp<std::int64_t>(x.dim(1), 1, 32));
        const NodePairs<T> p = {x.data,      call.template x<T>(2).data,
                                pairs.nodes, pairs.codes,
                                pairs.n,     pairs.depth,
                                x.dim(1),    lanes,
                                gy,          pairs.losses};
        const std::int64_t pairs_of_block = block / lanes;
        const std::int64_t blocks = (pairs.n + pairs_of_block - 1) / pairs_of_block;
        if (blocks > 0)
            call.launch(&pairs_kernel<T>, dim3(static_cast<unsigned>(blocks)), block, p);
        return pairs;
    }
};

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
        const Ways<I, I, T> ways = {
            tables, t.data, nodes.data, call.template y<T>(1).data, nodes.dim(1), call.adds(1)};
        each(call.queue(), t.size(), ways);
    }
};
