// The largest or smallest elements along an axis, on CUDA: a merge sort of the indices of all
// lines. Each pass merges pairs of sorted runs; each index finds its place by a binary search.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "topk.hpp"

namespace catena::plugins {

template <class T>
struct Sorting {
    using C = cuda::Compute<T>;
    std::int64_t length, inner;  // of the axis
    std::int64_t largest;
    const T* x;

    // The key of an element of a line.
    __device__ __forceinline__ auto key(std::int64_t line, std::int64_t i) const {
        const std::int64_t outer = line / inner;
        const auto k = ordered(cuda::load_as<C>(x[(outer * length + i) * inner + line % inner]));
        return largest != 0 ? static_cast<decltype(k)>(~k) : k;
    }
};
template <class T>
struct MergeRuns : Sorting<T> {
    __device__ __forceinline__ void operator()(std::int64_t element) const {
        const std::int64_t line = element / this->length;
        const std::int64_t i = element % this->length;
        const std::int64_t start = i / (2 * width) * (2 * width);
        const std::int64_t middle = min(start + width, this->length);
        const std::int64_t end = min(start + 2 * width, this->length);
        const std::int64_t* const runs = from + line * this->length;
        const std::int64_t own = width == 1 ? i : runs[i];
        const auto key = this->key(line, own);
        // Counts the elements of the other run that are before this one. Of equals, those of the
        // first run are.
        const bool is_first = i < middle;
        const std::int64_t low = is_first ? middle : start;
        std::int64_t count = 0;
        std::int64_t most = (is_first ? end : middle) - low;
        while (count < most) {
            const std::int64_t half = (count + most) / 2;
            const auto other = this->key(line, width == 1 ? low + half : runs[low + half]);
            if (is_first ? other < key : other <= key) count = half + 1;
            else most = half;
        }
        to[line * this->length + (is_first ? i : i - middle + start) + count] = own;
    }
    std::int64_t width;  // of the runs; 1: indices are not yet in `from`
    const std::int64_t* from;
    std::int64_t* to;

private:
    static __device__ __forceinline__ std::int64_t min(std::int64_t a, std::int64_t b) {
        return a < b ? a : b;
    }
};
template <class T>
struct TakeSorted {
    __device__ __forceinline__ void operator()(std::int64_t element) const {
        const std::int64_t outer = element / (k * inner);
        const std::int64_t i = element / inner % k;
        const std::int64_t line = outer * inner + element % inner;
        const std::int64_t at = sorted == nullptr ? 0 : sorted[line * length + i];
        indices[element] = at;
        cuda::store(
            y[element], add != 0,
            cuda::load_as<cuda::Compute<T>>(x[(outer * length + at) * inner + element % inner]));
    }
    std::int64_t length, inner, k, add;
    const std::int64_t* sorted;  // null for lines of one element
    const T* x;
    T* y;
    std::int64_t* indices;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Topk> {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        const Axis axis = catena::plugins::Topk::axis_of(call);
        plan.scratch_bytes =
            static_cast<std::uint64_t>(2 * axis.count() * axis.length) * sizeof(std::int64_t);
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const Axis axis = Topk::axis_of(call);
        const T* const x = call.template x<T>(0).data;
        const auto y = call.template y<T>(0);
        if (y.size() == 0) return;
        const std::int64_t n = axis.count() * axis.length;
        const Sorting<T> sorting = {axis.length, axis.inner, call.template attr<"largest">(), x};
        auto* to = call.template scratch<std::int64_t>();
        std::int64_t* from = to + n;
        for (std::int64_t width = 1; width < axis.length; width *= 2) {
            each(call.queue(), n, MergeRuns<T>{sorting, width, from, to});
            std::swap(from, to);
        }
        each(
            call.queue(), y.size(),
            TakeSorted<T>{axis.length, axis.inner, call.template attr<"k">(), call.adds(0),
                          axis.length > 1 ? from : nullptr, x, y.data, call.template y<I>(1).data});
    }
};
