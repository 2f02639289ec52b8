// The gradient of a convolution for its filters, on CUDA.
#pragma once

#include "convolution.cuh"
#include "convolution_2d_grad_w.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Convolution2DGradW> {
    static bool supports(const catena_call& call) {
        return catena::plugins::is_countable(sizes(call));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = catena::plugins::correlate_scratch<T>(sizes(call.raw()));
    }
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::correlate_on_device(call, sizes(call.raw()), call.template x<T>(0).data,
                                             call.template x<T>(1).data, call.template y<T>(0).data,
                                             call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const T* const ggw = call.template gy<T>(0).data;
        const T* const no_bias = nullptr;
        const Convolution c = sizes(call.raw());
        if (const auto gx = call.template gx<T>(0))
            convolve_back_on_device(call, c, call.template x<T>(1).data, ggw, no_bias, gx.data,
                                    call.adds(0));
        if (const auto ggy = call.template gx<T>(1))
            convolve_on_device(call, c, call.template x<T>(0).data, ggw, no_bias, ggy.data,
                               call.adds(1));
    }

private:
    static catena::plugins::Convolution sizes(const catena_call& call) {
        using F = catena::plugins::Convolution2DGradW;
        const bool forward = call.phase == CATENA_PHASE_FORWARD;
        return catena::plugins::convolution_of(plugin::Call<F, Isa::baseline>(nullptr, call),
                                               shape_of(*call.x[0]), shape_of(*call.x[1]),
                                               shape_of(*(forward ? call.y[0] : call.gy[0])));
    }
};
