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
// Labels of 4 or 8 bytes each; the same kernel reads both.
struct Labels {
    template <class I>
    Labels(const auto& call, Tensor<const I> t)
        : data(t.data),
          ignored(static_cast<I>(call.template attr<"ignore_label">())),
          wide(sizeof(I) == 8) {}
    __device__ __forceinline__ std::int64_t operator[](std::int64_t i) const {
        return wide != 0 ? static_cast<const std::int64_t*>(data)[i]
                         : std::int64_t{static_cast<const std::int32_t*>(data)[i]};
    }
    const void* data;
    std::int64_t ignored;
    std::int64_t wide;
};

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

}  // namespace catena::plugins
