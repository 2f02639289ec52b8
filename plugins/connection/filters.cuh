// A layer of filters over images, on CUDA: convolution, and the other way round.
#pragma once

#include "convolution.cuh"

namespace catena::plugins {

// transposed: x has the pixels that filters make images of.
template <class F, bool transposed>
struct FilterKernels {
    static bool supports(const catena_call& call) { return is_countable(sizes(call)); }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD) return;
        if (call.wants(1)) plan.scratch_bytes = correlate_scratch<T>(sizes(call.raw()));
        if (call.wants(2))
            plan.scratch_bytes =
                std::max(plan.scratch_bytes, sum_channels_scratch<T>(call.template gy<T>(0).shape));
    }
    template <class T>
    static void forward(const auto& call) {
        apply<T, transposed>(call, call.template x<T>(0).data, call.template x<T>(1).data,
                             call.template x<T>(2).data, call.template y<T>(0).data, call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        if (const auto gx = call.template gx<T>(0))
            apply<T, !transposed>(call, gy.data, call.template x<T>(1).data,
                                  static_cast<const T*>(nullptr), gx.data, call.adds(0));
        if (const auto gw = call.template gx<T>(1)) {
            const T* const x = call.template x<T>(0).data;
            correlate_on_device(call, sizes(call.raw()), transposed ? gy.data : x,
                                transposed ? x : gy.data, gw.data, call.adds(1));
        }
        if (const auto gb = call.template gx<T>(2))
            sum_channels_on_device(call, gy, gb.data, call.adds(2));
    }

private:
    template <class T, bool back>
    static void apply(const auto& call, const T* from, const T* w, const T* bias, T* to, bool add) {
        const Convolution c = sizes(call.raw());
        if constexpr (back) convolve_back_on_device(call, c, from, w, bias, to, add);
        else convolve_on_device(call, c, from, w, bias, to, add);
    }
    static Convolution sizes(const catena_call& call) {
        const Shape x = shape_of(*call.x[0]);
        const Shape y = shape_of(*(call.phase == CATENA_PHASE_FORWARD ? call.y[0] : call.gy[0]));
        return convolution_of(Call<F, Isa::baseline>(nullptr, call), transposed ? y : x,
                              transposed ? x : y, shape_of(*call.x[1]));
    }
};

}  // namespace catena::plugins
