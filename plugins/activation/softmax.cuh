// Softmax and log_softmax on CUDA. The forward kernel reads x twice, the second time mostly from a cache.
#pragma once

#include <catena/plugin/cuda/lines.cuh>

#include "softmax.hpp"

namespace catena::plugins {

template <class T, bool log>
__global__ void __launch_bounds__(cuda::block, 1)
    softmax_kernel(const cuda::Lines lines, const T* x, T* y, bool add) {
    using C = cuda::Compute<T>;
    using Sum = cuda::LogSum<C>;
    const cuda::Line line(lines);
    Sum own = {Sum::lowest(), C(0)};
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        own.take(cuda::load_as<C>(x[line.at(i)]));
    const Sum all = cuda::join_lanes(lines, line, own, &Sum::join);
    const C by = log ? math::log(all.sum) : C(1) / all.sum;
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes) {
        const C v = cuda::load_as<C>(x[line.at(i)]) - all.most;
        cuda::store(y[line.at(i)], add, log ? v - by : math::exp(v) * by);
    }
}

// gx = y * (gy - sum of y * gy), or for log_softmax gy - e^y * sum of gy.
template <class T, bool log>
__global__ void __launch_bounds__(cuda::block, 1)
    softmax_gradient_kernel(const cuda::Lines lines, const T* y, const T* gy, T* gx, bool add) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    C own = 0;
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        own += (log ? C(1) : cuda::load_as<C>(y[line.at(i)])) * cuda::load_as<C>(gy[line.at(i)]);
    const C dot = cuda::join_lanes(lines, line, own, std::plus());
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes) {
        const auto v = cuda::load_as<C>(y[line.at(i)]);
        const auto g = cuda::load_as<C>(gy[line.at(i)]);
        cuda::store(gx[line.at(i)], add, log ? g - math::exp(v) * dot : v * (g - dot));
    }
}

template <bool log>
struct SoftmaxOnCuda {
    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        if (y.size() == 0) return;
        const cuda::Lines lines = lines_of(call, y.shape);
        call.launch(&softmax_kernel<T, log>, lines.blocks(), cuda::block, lines, x.data, y.data,
                    call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (gx.size() == 0) return;
        const cuda::Lines lines = lines_of(call, y.shape);
        call.launch(&softmax_gradient_kernel<T, log>, lines.blocks(), cuda::block, lines, y.data,
                    gy.data, gx.data, call.adds(0));
    }

private:
    static cuda::Lines lines_of(const auto& call, Shape shape) {
        return cuda::Lines(Axis(shape, axis_index(call.template attr<"axis">(), shape.size())));
    }
};

}  // namespace catena::plugins

template <class F>
    requires requires { F::logarithm; }
struct catena::plugin::cuda::Kernels<F> : catena::plugins::SoftmaxOnCuda<F::logarithm> {};
