// Convolution of images with filters, on CUDA.
#pragma once

#include "convolution.cuh"
#include "convolution_2d.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Convolution2D> {
    static bool supports(const catena_call& call) {
        return catena::plugins::is_countable(sizes(call));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD) return;
        if (call.wants(1)) plan.scratch_bytes = correlate_scratch<T>(sizes(call.raw()));
        if (call.wants(2))
            plan.scratch_bytes =
                std::max(plan.scratch_bytes, sum_channels_scratch<T>(call.template gy<T>(0).shape));
    }
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::convolve_on_device(call, sizes(call.raw()), call.template x<T>(0).data,
                                            call.template x<T>(1).data, call.template x<T>(2).data,
                                            call.template y<T>(0).data, call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto gy = call.template gy<T>(0);
        const Convolution c = sizes(call.raw());
        if (const auto gx = call.template gx<T>(0))
            convolve_back_on_device(call, c, gy.data, call.template x<T>(1).data,
                                    static_cast<const T*>(nullptr), gx.data, call.adds(0));
        if (const auto gw = call.template gx<T>(1))
            correlate_on_device(call, c, call.template x<T>(0).data, gy.data, gw.data,
                                call.adds(1));
        if (const auto gb = call.template gx<T>(2))
            sum_channels_on_device(call, gy, gb.data, call.adds(2));
    }

private:
    static catena::plugins::Convolution sizes(const catena_call& call) {
        using F = catena::plugins::Convolution2D;
        const bool forward = call.phase == CATENA_PHASE_FORWARD;
        return catena::plugins::convolution_of(
            plugin::Call<F, Isa::baseline>(nullptr, call), shape_of(*call.x[0]),
            shape_of(*(forward ? call.y[0] : call.gy[0])), shape_of(*call.x[1]));
    }
};
