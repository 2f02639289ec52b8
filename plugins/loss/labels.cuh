// Labels, on CUDA. Nobody waits for the device to tell of a label that is no class: it makes the
// result NaN.
#pragma once

#include <catena/plugin/cuda/lines.cuh>
#include <catena/plugin/cuda/reduce.cuh>

#include "labels.hpp"

namespace catena::plugins {

// 1 for a label that counts, 0 for one that is ignored, NaN for one that is no class.
template <class I>
__device__ __forceinline__ double counted(I label, I ignored, std::int64_t classes) {
    return label == ignored ? 0.0
           : label >= 0 && label < static_cast<I>(classes)
               ? 1.0
               : std::numeric_limits<double>::quiet_NaN();
}
// Labels of 4 or 8 bytes each: a kernel reads either.
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

inline bool every_axis(std::size_t) { return true; }

// What labels give to a mean, and how many count.
struct LabelSums {
    double total, count;
};

// Pairs up to n sums of a block, n a power of two; the first of them is the result, for thread 0.
__device__ __forceinline__ void join_sums(LabelSums* sums, int n) {
    const int t = static_cast<int>(threadIdx.x);
    for (int half = n / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t >= half) continue;
        sums[t].total += sums[t + half].total;
        sums[t].count += sums[t + half].count;
    }
}
// Adds up the lines of a block, in a fixed order. own: of the thread's line, as its lane 0 has it. All
// threads take part.
__device__ __forceinline__ void sum_lines(const cuda::Lines& lines, const cuda::Line& line,
                                          const LabelSums& own, LabelSums* of_blocks) {
    __shared__ LabelSums sums[cuda::block];  // no block has more lines
    if (line.lane == 0) sums[line.place] = line.there ? own : LabelSums{0, 0};
    join_sums(sums, lines.threads / lines.lanes);
    if (threadIdx.x == 0) of_blocks[blockIdx.x] = sums[0];
}

// y = total / count of all blocks' sums, or `none` where nothing counts. One block.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    mean_kernel(const LabelSums* of_blocks, std::int64_t n, double none, T* y, bool add) {
    __shared__ LabelSums sums[cuda::block];
    LabelSums own = {0, 0};
    for (std::int64_t i = threadIdx.x; i < n; i += cuda::block) {
        own.total += of_blocks[i].total;
        own.count += of_blocks[i].count;
    }
    sums[threadIdx.x] = own;
    join_sums(sums, cuda::block);
    if (threadIdx.x != 0) return;
    const double mean = sums[0].count == 0 ? none : sums[0].total / sums[0].count;
    *y = add ? cuda::stored_sum(*y, mean) : cuda::store_as<T>(mean);
}

// As many sums as a launch for the lines has blocks.
inline std::uint64_t label_sums_bytes(const cuda::Lines& lines) {
    return std::uint64_t{lines.blocks().x} * sizeof(LabelSums);
}
template <class T>
void mean_on_device(const auto& call, const cuda::Lines& lines, double none) {
    call.launch(&mean_kernel<T>, dim3(1), cuda::block, call.template scratch<LabelSums>(),
                std::int64_t{lines.blocks().x}, none, call.template y<T>(0).data, call.adds(0));
}

}  // namespace catena::plugins
