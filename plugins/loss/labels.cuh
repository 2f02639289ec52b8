// Labels, on CUDA. Nobody waits for the device to tell of a label that is no class: it makes the
// result NaN.
#pragma once

#include <catena/plugin/cuda/lines.cuh>
#include <catena/plugin/cuda/reduce.cuh>

#include "labels.hpp"

namespace catena::plugins {

// 1 for a label that counts, 0 for one that is ignored, NaN for one that is no class.
template <class I>
struct CountedLabel {
    using In = cuda::Types<I>;
    using Out = cuda::Types<I>;
    using Value = double;
    static constexpr bool walks = false;
    __device__ __forceinline__ void operator()(const double* t, double* y) const {
        y[0] = t[0] == ignored               ? 0.0
               : t[0] >= 0 && t[0] < classes ? 1.0
                                             : std::numeric_limits<double>::quiet_NaN();
    }
    double ignored, classes;
};
using Numbers64 = cuda::Copy<double, double>;

inline bool every_axis(std::size_t) { return true; }

// Scratch of kernels that add up something for each label: the terms, the two sums, and what adding
// takes.
struct LabelScratch {
    template <class I>
    static std::uint64_t bytes(Shape t) {
        const cuda::Operand in[] = {{nullptr, t}};
        return padded(static_cast<std::uint64_t>(size_of(t) + 2) * sizeof(double)) +
               std::max(cuda::sum_scratch<CountedLabel<I>>(t, in, every_axis),
                        cuda::sum_scratch<Numbers64>(t, in, every_axis));
    }
    LabelScratch(void* scratch, std::int64_t n)
        : count(static_cast<double*>(scratch)),
          total(count + 1),
          terms(count + 2),
          rest(static_cast<char*>(scratch) +
               padded(static_cast<std::uint64_t>(n + 2) * sizeof(double))) {}

    double* count;
    double* total;
    double* terms;
    void* rest;

private:
    static std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) & ~std::uint64_t{63}; }
};

template <class I>
void count_on_device(const auto& call, Tensor<const I> t, std::int64_t classes,
                     const LabelScratch& scratch) {
    const cuda::Operand in[] = {{t.data, t.shape}};
    const CountedLabel<I> op{static_cast<double>(call.template attr<"ignore_label">()),
                             static_cast<double>(classes)};
    cuda::sum(call.queue(), op, t.shape, in, 0, every_axis, scratch.count, false, scratch.rest);
}
inline void add_terms_on_device(const auto& call, Shape t, const LabelScratch& scratch) {
    const cuda::Operand in[] = {{scratch.terms, t}};
    cuda::sum(call.queue(), Numbers64(), t, in, 0, every_axis, scratch.total, false, scratch.rest);
}

// y = total / count, or `none` where nothing counts.
template <class T>
__global__ void __launch_bounds__(1)
    mean_kernel(const double* total, const double* count, double none, T* y, bool add) {
    const double mean = *count == 0 ? none : *total / *count;
    *y = add ? cuda::stored_sum(*y, mean) : cuda::store_as<T>(mean);
}

}  // namespace catena::plugins
