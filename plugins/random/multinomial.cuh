// Random classes, on CUDA: those of the CPU for the same seed and offset. A block for each row.
#pragma once

#include <catena/plugin/cuda/draws.cuh>
#include <catena/plugin/cuda/elementwise.cuh>

#include "multinomial.hpp"

namespace catena::plugins {

// The probability of a class of a row.
template <class T>
struct ProbabilityOnDevice {
    __device__ __forceinline__ cuda::Compute<T> operator()(std::int64_t c) const {
        return cuda::load_as<cuda::Compute<T>>(row[c]);
    }
    const T* row;
};
template <class T>
__global__ void __launch_bounds__(cuda::block)
    search_kernel(std::int64_t classes, std::int64_t n, const T* p, const cuda::Draws draws,
                  std::int64_t* y) {
    __shared__ double before[Chunks::most + 1];
    __shared__ int valid;
    const Chunks chunks(classes);
    const std::int64_t r = blockIdx.x;
    const ProbabilityOnDevice<T> row = {p + r * classes};
    const auto t = static_cast<std::int64_t>(threadIdx.x);
    for (std::int64_t k = t; k < chunks.count; k += cuda::block) before[k] = chunks.sum(row, k);
    __syncthreads();
    if (t == 0) valid = chunks.accumulate(before) ? 1 : 0;
    __syncthreads();
    for (std::int64_t i = t; i < n; i += cuda::block)
        y[r * n + i] =
            valid != 0 ? chunks.find(row, before, uniform_of(draws[r * n + i])) : std::int64_t{-1};
}

// The least rival that follows another one. A negative key stands for an invalid probability, and
// is the least of all; an infinite key for no rival.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    compare_kernel(std::int64_t classes, std::int64_t n, const T* p, const cuda::Draws draws,
                   std::int64_t* y) {
    const std::int64_t r = blockIdx.x;
    const ProbabilityOnDevice<T> row = {p + r * classes};
    const auto t = static_cast<int>(threadIdx.x);
    constexpr double none = std::numeric_limits<double>::infinity();
    const auto least = [](const Rival& a, const Rival& b) { return b.precedes(a) ? b : a; };
    Rival last = {0, -1};
    for (std::int64_t i = 0; i < n; ++i) {
        Rival own = {none, -1};
        for (std::int64_t c = t; c < classes; c += cuda::block) {
            const auto probability = static_cast<double>(row(c));
            Rival rival = {none, -1};
            if (!(probability >= 0 && probability < none)) rival = {-1, -1};
            else if (probability > 0)
                rival = Rival::of(draws[r * Rival::blocks(classes) + c / 2], c, probability);
            if (rival.key < 0 || last.precedes(rival)) own = least(own, rival);
        }
        last = cuda::join_lanes(own, t, cuda::block, 1, least);
        if (t == 0) y[r * n + i] = last.index;
        if (last.index < 0) last = {none, -1};  // the remaining classes are -1, too
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Multinomial> {
    template <class T, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const Multinomials m(call);
        const Draws draws = reserve_draws(call.context(), m.blocks());
        if (m.rows > 0)
            call.launch(m.searches ? &search_kernel<T> : &compare_kernel<T>,
                        dim3(static_cast<unsigned>(m.rows)), block, m.classes, m.n,
                        call.template x<T>(0).data, draws, call.template y<std::int64_t>(0).data);
    }
};
