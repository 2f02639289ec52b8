// Labels on CUDA. A label out of range makes the result NaN: the host does not wait for a check.
#pragma once

#include <catena/plugin/cuda/lines.cuh>
#include <catena/plugin/cuda/reduce.cuh>

#include "labels.hpp"

namespace catena::plugins {

// Returns 1 for a label in range, 0 for an ignored label, and NaN for a label out of range.
template <class I>
__device__ __forceinline__ double counted(I label, I ignored, std::int64_t classes) {
    return label == ignored ? 0.0
           : label >= 0 && label < static_cast<I>(classes)
               ? 1.0
               : std::numeric_limits<double>::quiet_NaN();
}
// The sum of the labels' terms of a mean, and the number of labels that are not ignored.
struct LabelSums {
    static CATENA_FN LabelSums join(const LabelSums& a, const LabelSums& b) {
        return {a.total + b.total, a.count + b.count};
    }
    double total, count;
};
// Adds up the values of a block's threads, in a fixed order. All its threads must call it.
__device__ __forceinline__ LabelSums sum_block(const LabelSums& own) {
    return cuda::join_lanes(own, static_cast<int>(threadIdx.x), cuda::block, 1, &LabelSums::join);
}

// y = total / count over the sums of all blocks, or `none` if the count is 0. Runs as one block.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    mean_kernel(const LabelSums* of_blocks, std::int64_t n, double none, T* y, bool add) {
    LabelSums own = {0, 0};
    for (std::int64_t i = threadIdx.x; i < n; i += cuda::block)
        own = LabelSums::join(own, of_blocks[i]);
    const LabelSums all = sum_block(own);
    if (threadIdx.x == 0) cuda::store(*y, add, all.count == 0 ? none : all.total / all.count);
}

// Returns the bytes of scratch memory for a LabelSums per block of a launch for the lines.
inline std::uint64_t label_sums_bytes(const cuda::Lines& lines) {
    return std::uint64_t{lines.blocks().x} * sizeof(LabelSums);
}
template <class T>
void mean_on_device(const auto& call, const cuda::Lines& lines, double none) {
    call.launch(&mean_kernel<T>, dim3(1), cuda::block, call.template scratch<LabelSums>(),
                std::int64_t{lines.blocks().x}, none, call.template y<T>(0).data, call.adds(0));
}

// The class weights and the smoothing of a loss: see SmoothTargets and SoftTargets.
template <class T>
struct TargetsOnDevice {
    using C = cuda::Compute<T>;
    TargetsOnDevice(const auto& call, std::int64_t number_of_classes, double smoothing)
        : weights(call.template x<T>(2).data),
          classes(number_of_classes),
          sharp(static_cast<C>(1 - smoothing)),
          each(static_cast<C>(smoothing / static_cast<double>(number_of_classes))) {}
    __device__ __forceinline__ C weight(std::int64_t c) const {
        return weights == nullptr ? C(1) : cuda::load_as<C>(weights[c]);
    }
    // The value that a label adds to its class; NaN if it is out of range.
    __device__ __forceinline__ C at(std::int64_t label) const {
        return label >= 0 && label < classes ? sharp * weight(label)
                                             : std::numeric_limits<C>::quiet_NaN();
    }
    __device__ __forceinline__ C everywhere(std::int64_t c) const { return each * weight(c); }

    const T* weights;
    std::int64_t classes;
    C sharp, each;
};

// Where a block stores the losses of its labels: each of them, or only their sum.
template <class T>
struct LossesOnDevice {
    explicit LossesOnDevice(const auto& call)
        : single(call.template attr<"reduce">() == "no" ? call.template y<T>(0).data : nullptr),
          sums(call.template scratch<LabelSums>()),
          add(call.adds(0)) {}
    // All threads of the block must call it; those without a label pass zeros and `there` = false.
    __device__ __forceinline__ void put(std::int64_t i, bool there, const LabelSums& own) const {
        if (single == nullptr) {
            const LabelSums sum = sum_block(own);
            if (threadIdx.x == 0) sums[blockIdx.x] = sum;
        } else if (there) {
            cuda::store(single[i], add != 0, own.total);
        }
    }
    T* single;
    LabelSums* sums;
    std::int64_t add;
};
// The numbers that finish_kernel stores besides the loss: the output `norms` of
// softmax_cross_entropy.
template <class S>
struct Norms {
    S* data;
    std::int64_t n, add;
};
// Stores the loss, unless y is null, and the norms. by: the divisor of the sum; 0: the count.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    finish_kernel(const LabelSums* of_blocks, std::int64_t n, double by,
                  const TargetsOnDevice<T> targets, T* y, bool add, const Norms<S> norms) {
    LabelSums own = {0, 0};
    for (std::int64_t i = threadIdx.x; y != nullptr && i < n; i += cuda::block)
        own = LabelSums::join(own, of_blocks[i]);
    const LabelSums all = sum_block(own);
    own = {0, 0};
    if (norms.n == 2 && targets.each != 0)
        for (std::int64_t c = threadIdx.x; c < targets.classes; c += cuda::block)
            own.total += static_cast<double>(targets.everywhere(c));
    const double rest = sum_block(own).total;
    if (threadIdx.x != 0) return;
    if (by == 0) by = all.count == 0 ? 1 : all.count;
    if (y != nullptr) cuda::store(*y, add, all.total / by);
    if (norms.n > 0) cuda::store(norms.data[0], norms.add != 0, by);
    if (norms.n > 1) cuda::store(norms.data[1], norms.add != 0, rest);
}
template <class T, class S>
void finish_losses(const auto& call, std::int64_t blocks, double by,
                   const TargetsOnDevice<T>& targets, const Norms<S>& norms) {
    const bool single = call.template attr<"reduce">() == "no";
    if (single && norms.n == 0) return;
    call.launch(&finish_kernel<T, S>, dim3(1), cuda::block, call.template scratch<LabelSums>(),
                blocks, by, targets, single ? nullptr : call.template y<T>(0).data, call.adds(0),
                norms);
}
// Returns the divisor of the sum of the losses of labels of this shape, or 0 for the count.
inline double divisor_on_device(const auto& call, Shape t) {
    if (call.template attr<"reduce">() != "mean") return 1;
    if (call.template attr<"normalize">()) return 0;
    return static_cast<double>(std::max<std::int64_t>(t[0], 1));
}
template <class S>
Norms<S> norms_of(const auto& call, std::size_t i) {
    const auto norms = call.template y<S>(i);
    return {norms.data, norms.size(), call.adds(i)};
}

}  // namespace catena::plugins
