// Softmax as a walk through a binary tree, on CUDA: by pairs of a sample and an inner node above its
// label. A label that the tree does not have makes the loss and its sample's gradient NaN, and adds
// nothing to W's.
#pragma once

#include <optional>

#include "binary_hierarchical_softmax.hpp"
#include "label_tree.cuh"
#include "rows_by_id.cuh"

namespace catena::plugins {

// The inner nodes above each label and the codes there, the root last; -1 and 0 after that. Above a
// label that the tree does not have: TreeTables::wrong and NaN.
template <class C>
struct Ways {
    TreeTables tree;
    const void* labels;
    void* nodes;
    C* codes;
    std::int64_t n;
    std::int64_t depth;
    std::int32_t wide_labels, wide_nodes;  // of 8 bytes, else of 4
    std::int64_t add;
};
template <class C>
__global__ void __launch_bounds__(cuda::block) ways_kernel(const __grid_constant__ Ways<C> p) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         i < p.n; i += step) {
        const std::int64_t label =
            p.wide_labels ? static_cast<const std::int64_t*>(p.labels)[i]
                          : std::int64_t{static_cast<const std::int32_t*>(p.labels)[i]};
        LabelTree::Link link = p.tree.find(label);
        for (std::int64_t k = i * p.depth; k < (i + 1) * p.depth; ++k) {
            if (p.wide_nodes) static_cast<std::int64_t*>(p.nodes)[k] = link.parent;
            else static_cast<std::int32_t*>(p.nodes)[k] = link.parent;
            const float code = link.parent == TreeTables::wrong
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : static_cast<float>(link.code);
            p.codes[k] = p.add ? cuda::stored_sum(p.codes[k], code) : cuda::store_as<C>(code);
            link = link.parent >= 0 ? p.tree.nodes[link.parent] : LabelTree::Link{-1, 0};
        }
    }
}
// N stands for the type of nodes, C for that of codes.
template <class I, class N, class C>
void find_ways(const cuda::Queue& queue, const TreeTables& tree, const I* labels, std::int64_t n,
               std::int64_t depth, N* nodes, C* codes, bool add) {
    const Ways<C> p = {.tree = tree,
                       .labels = labels,
                       .nodes = nodes,
                       .codes = codes,
                       .n = n,
                       .depth = depth,
                       .wide_labels = sizeof(I) == 8,
                       .wide_nodes = sizeof(N) == 8,
                       .add = add};
    queue.launch(&ways_kernel<C>, queue.grid(n), cuda::block, p);
}

// The products of pairs, a warp for each, and what becomes of them: a loss for each block, or factors
// of the gradient in place of the codes.
template <class T>
struct NodePairs {
    using C = cuda::Compute<T>;

    const T* x;
    const T* w;
    const std::int32_t* nodes;
    C* codes;
    std::int64_t n;
    cuda::Divider<std::uint64_t> depth;
    std::int64_t size;
    const T* gy;
    double* losses;  // null: factors
    std::int64_t packed;
};
inline constexpr int pairs_at_once = cuda::block / 32;
template <class T>
__global__ void __launch_bounds__(cuda::block)
    pairs_kernel(const __grid_constant__ NodePairs<T> p) {
    using C = cuda::Compute<T>;
    constexpr int width = cuda::pack_width<T>();
    __shared__ double losses[pairs_at_once];
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * pairs_at_once;
    double loss = 0;
    for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * pairs_at_once + warp; k < p.n;
         k += step) {
        const std::int64_t node = p.nodes[k];
        const C code = p.codes[k];
        if (node < 0) {  // 0 or NaN, which is the factor as well
            loss += static_cast<double>(code);
            continue;
        }
        const auto i = static_cast<std::int64_t>(p.depth.quotient(static_cast<std::uint64_t>(k)));
        const T* const x = p.x + i * p.size;
        const T* const w = p.w + node * p.size;
        C dot = 0;
        if (p.packed) {
            for (std::int64_t j = lane * width; j < p.size; j += 32 * width) {
                C a[width], b[width];
                cuda::load<width>(x + j, true, width, a);
                cuda::load<width>(w + j, true, width, b);
                CATENA_UNROLL
                for (int e = 0; e < width; ++e) dot += a[e] * b[e];
            }
        } else {
            for (std::int64_t j = lane; j < p.size; j += 32)
                dot += cuda::load_as<C>(x[j]) * cuda::load_as<C>(w[j]);
        }
        CATENA_UNROLL
        for (int other = 16; other > 0; other /= 2) dot += __shfl_xor_sync(~0u, dot, other);
        const double z = -static_cast<double>(code) * static_cast<double>(dot);
        if (p.losses != nullptr)
            loss += math::max(z, 0.0) + math::log(1.0 + math::exp(-math::abs(z)));
        else if (lane == 0)
            p.codes[k] = -code * static_cast<C>(math::sigmoid(z)) * cuda::load_as<C>(*p.gy);
    }
    if (p.losses == nullptr) return;
    if (lane == 0) losses[warp] = loss;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int k = 1; k < pairs_at_once; ++k) loss += losses[k];
    p.losses[blockIdx.x] = loss;
}
// y = the sum of n losses. One block.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    total_kernel(const double* losses, std::int64_t n, T* y, bool add) {
    __shared__ double sums[cuda::block];
    const int t = static_cast<int>(threadIdx.x);
    double own = 0;
    for (std::int64_t i = t; i < n; i += cuda::block) own += losses[i];
    sums[t] = own;
    for (int half = cuda::block / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    if (t == 0) *y = add ? cuda::stored_sum(*y, sums[0]) : cuda::store_as<T>(sums[0]);
}

// gx[i] = the sum of factors times rows of W.
template <class T>
struct SampleGradients {
    Columns columns;
    const T* w;
    const std::int32_t* nodes;
    const cuda::Compute<T>* factors;
    T* gx;
    std::int64_t depth;
    std::int64_t threads;
    std::int64_t add;
};
template <class T>
__global__ void __launch_bounds__(cuda::block)
    sample_gradients_kernel(const __grid_constant__ SampleGradients<T> p) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    constexpr int batch = 4;  // rows whose loads are on their way together
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         t < p.threads; t += step) {
        const Strip<w> strip(p.columns, t);
        const std::int32_t* const nodes = p.nodes + strip.thing * p.depth;
        const C* const factors = p.factors + strip.thing * p.depth;
        C sum[w] = {};
        for (std::int64_t k = 0; k < p.depth && nodes[k] != -1; k += batch) {
            C v[batch][w] = {};
            C factor[batch];
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b) {
                const bool there = k + b < p.depth;
                const std::int64_t node = there ? nodes[k + b] : -1;
                factor[b] = there ? factors[k + b] : C(0);
                if (node >= 0) strip.load(p.w + node * p.columns.size, v[b]);
            }
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b) {
                CATENA_UNROLL
                for (int j = 0; j < w; ++j) sum[j] += factor[b] * v[b][j];
            }
        }
        strip.store(p.gx + strip.thing * p.columns.size, p.add != 0, sum);
    }
}

// The samples of a call, some at a time, and where what is computed of them is in scratch.
template <class T>
struct SampleGroups {
    SampleGroups(const catena_call& call, const LabelTree& tree, Room& room)
        : n(shape_of(*call.x[0])[0]),
          depth(std::max<std::int64_t>(tree.depth(), 1)) {    // even one label may be wrong
        constexpr std::int64_t most = std::int64_t{1} << 18;  // pairs
        at_once = std::clamp<std::int64_t>(most / depth, 1, std::max<std::int64_t>(n, 1));
        count = (n + at_once - 1) / at_once;
        const std::int64_t pairs = at_once * depth;
        blocks = std::min<std::int64_t>((pairs + pairs_at_once - 1) / pairs_at_once, 1024);
        nodes = room.take<std::int32_t>(pairs);
        codes = room.take<cuda::Compute<T>>(pairs);
        if (call.phase == CATENA_PHASE_FORWARD) losses = room.take<double>(count * blocks);
        else if (call.gx[2] != nullptr)
            sums.emplace(BinaryHierarchicalSoftmax::about.name, pairs, tree.nodes(),
                         shape_of(*call.x[0])[1], room);
    }

    std::int64_t n;
    std::int64_t depth;
    std::int64_t at_once;
    std::int64_t count;   // of groups
    std::int64_t blocks;  // that add up a group's losses
    std::int32_t* nodes;
    cuda::Compute<T>* codes;
    double* losses = nullptr;
    std::optional<RowSumPlan<T>> sums;  // of W's gradient
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BinaryHierarchicalSoftmax> {
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        const auto tree = tree_of(call);
        Room room;
        const Groups<T> groups(call.raw(), *tree, room);
        room.take<char>(static_cast<std::int64_t>(Trees::scratch(call.raw().device_id, tree)));
        plan.scratch_bytes = room.bytes();
    }
    template <class T, class I>
    static void forward(const auto& call) {
        const auto tree = tree_of(call);
        Room room(call.template scratch<void>());
        const Groups<T> groups(call.raw(), *tree, room);
        const auto tables = Trees::tables(call.queue(), tree, room.take<char>(0));
        for (std::int64_t g = 0; g < groups.count; ++g)
            work<T, I>(call, tables, groups, g, nullptr, groups.losses + g * groups.blocks);
        call.launch(&catena::plugins::total_kernel<T>, dim3(1), block, groups.losses,
                    groups.count * groups.blocks, call.template y<T>(0).data, call.adds(0));
    }
    template <class T, class I>
    static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(2);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(2);
        if (gx && !call.adds(0) && !gy) call.zero(gx);
        if (gw && !call.adds(2)) call.zero(gw);
        if (!gy) return;
        const auto tree = tree_of(call);
        Room room(call.template scratch<void>());
        const Groups<T> groups(call.raw(), *tree, room);
        const auto tables = Trees::tables(call.queue(), tree, room.take<char>(0));
        for (std::int64_t g = 0; g < groups.count; ++g) {
            const std::int64_t count = work<T, I>(call, tables, groups, g, gy.data, nullptr);
            const std::int64_t first = g * groups.at_once * x.dim(1);  // element
            if (gx) add_to_samples<T>(call, groups, count, w, gx, first);
            if (!gw) continue;
            auto sums = *groups.sums;
            sums.n = count * groups.depth;
            catena::plugins::sum_rows_on_device<T>(
                call.queue(), sums,
                catena::plugins::id_list(static_cast<const std::int32_t*>(groups.nodes), w.dim(0)),
                x.data + first, groups.codes, groups.depth, gw.data, call.adds(2) || g > 0);
        }
    }

private:
    using F = catena::plugins::BinaryHierarchicalSoftmax;
    using Trees = catena::plugins::TreesOnDevice;
    using Room = catena::plugins::Room;
    template <class T>
    using Groups = catena::plugins::SampleGroups<T>;

    static auto tree_of(const auto& call) {
        return catena::plugins::tree_of(F::about.name, call.template attr<"tree">());
    }
    // The ways of a group's samples, and then their losses or the factors of their gradients; returns
    // how many samples there are.
    template <class T, class I>
    static std::int64_t work(const auto& call, const catena::plugins::TreeTables& tables,
                             const Groups<T>& groups, std::int64_t g, const T* gy, double* losses) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(2);
        const std::int64_t first = g * groups.at_once;
        const std::int64_t count = std::min(groups.at_once, groups.n - first);
        find_ways(call.queue(), tables, call.template x<I>(1).data + first, count, groups.depth,
                  groups.nodes, groups.codes, false);
        constexpr int width = pack_width<T>();
        const NodePairs<T> p = {
            .x = x.data + first * x.dim(1),
            .w = w.data,
            .nodes = groups.nodes,
            .codes = groups.codes,
            .n = count * groups.depth,
            .depth = Divider<std::uint64_t>(static_cast<std::uint64_t>(groups.depth)),
            .size = x.dim(1),
            .gy = gy,
            .losses = losses,
            .packed = x.dim(1) % width == 0 && is_aligned<T, width>(x.data) &&
                      is_aligned<T, width>(w.data)};
        call.launch(&pairs_kernel<T>, dim3(static_cast<unsigned>(groups.blocks)), cuda::block, p);
        return count;
    }
    template <class T>
    static void add_to_samples(const auto& call, const Groups<T>& groups, std::int64_t count,
                               Tensor<const T> w, Tensor<T> gx, std::int64_t first) {
        using namespace catena::plugins;
        constexpr int width = pack_width<T>();
        const Columns columns(w.dim(1), width,
                              is_aligned<T, width>(w.data) && is_aligned<T, width>(gx.data));
        const SampleGradients<T> p = {.columns = columns,
                                      .w = w.data,
                                      .nodes = groups.nodes,
                                      .factors = groups.codes,
                                      .gx = gx.data + first,
                                      .depth = groups.depth,
                                      .threads = columns.threads(count),
                                      .add = call.adds(0)};
        call.launch_for(p.threads, &sample_gradients_kernel<T>, p);
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
        find_ways(call.queue(), tables, t.data, t.size(), nodes.dim(1), nodes.data,
                  call.template y<T>(1).data, call.adds(1));
    }

private:
    static auto tree_of(const auto& call) {
        return catena::plugins::tree_of(catena::plugins::TreeWays::about.name,
                                        call.template attr<"tree">());
    }
};
