// Normalisation by the neighbouring channels, on CUDA: one thread per element.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "local_response_normalization.hpp"

namespace catena::plugins {

// The channels around an element of (N, C, rest).
struct ChannelWindow {
    ChannelWindow(Shape x, std::int64_t n)
        : size(size_of(x)), channels(x[1]), rest(size_of(x.subspan(2))), reach(n / 2) {}
    // Returns the sum of f(element) over the window around element i.
    template <class C, class F>
    __device__ __forceinline__ C sum(std::int64_t i, const F& f) const {
        const std::int64_t c = i / rest % channels;
        const std::int64_t last = c + reach < channels ? c + reach : channels - 1;
        C total = 0;
        for (std::int64_t k = c < reach ? 0 : c - reach; k <= last; ++k)
            total += f(i + (k - c) * rest);
        return total;
    }
    std::int64_t size, channels, rest;
    std::int64_t reach;  // channels on either side
};

// y = x unit^-beta. If gy is not null, instead scaled = gy unit^-beta and inner = x scaled / unit.
template <class T>
struct Response {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const C unit = k + alpha * window.sum<C>(i, [&](std::int64_t j) {
            const auto v = cuda::load_as<C>(x[j]);
            return v * v;
        });
        const C power = quick != 0 ? ThreeQuarters()(unit, beta) : AnyPower()(unit, beta);
        const auto v = cuda::load_as<C>(x[i]);
        if (gy == nullptr) return cuda::store(y[i], add != 0, v * power);
        scaled[i] = cuda::load_as<C>(gy[i]) * power;
        inner[i] = v * scaled[i] / unit;
    }
    ChannelWindow window;
    const T* x;
    C k, alpha, beta;
    std::int32_t quick;
    const T* gy = nullptr;
    T* y = nullptr;
    C* scaled = nullptr;
    C* inner = nullptr;
    std::int64_t add = 0;
};
// gx = scaled - slope x (sum of inner over the window).
template <class T>
struct ResponseGradient {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const C sum = window.sum<C>(i, [&](std::int64_t j) { return inner[j]; });
        cuda::store(gx[i], add != 0, scaled[i] - slope * cuda::load_as<C>(x[i]) * sum);
    }
    ChannelWindow window;
    const T* x;
    T* gx;
    const C* scaled;
    const C* inner;
    C slope;
    std::int64_t add;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LocalResponseNormalization> {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_BACKWARD)
            plan.scratch_bytes =
                2 * static_cast<std::uint64_t>(call.template x<T>(0).size()) * sizeof(Compute<T>);
    }
    template <class T>
    static void forward(const auto& call) {
        auto rule = response_of<T>(call);
        rule.y = call.template y<T>(0).data;
        rule.add = call.adds(0);
        each(call.queue(), rule.window.size, rule);
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        auto rule = response_of<T>(call);
        rule.gy = call.template gy<T>(0).data;
        rule.scaled = call.template scratch<Compute<T>>();
        rule.inner = rule.scaled + gx.size();
        each(call.queue(), gx.size(), rule);
        each(call.queue(), gx.size(),
             catena::plugins::ResponseGradient<T>{rule.window, rule.x, gx.data, rule.scaled,
                                                  rule.inner, 2 * rule.alpha * rule.beta,
                                                  call.adds(0)});
    }

private:
    template <class T>
    static catena::plugins::Response<T> response_of(const auto& call) {
        using C = Compute<T>;
        const auto x = call.template x<T>(0);
        const double beta = call.template attr<"beta">();
        return {.window = {x.shape, call.template attr<"n">()},
                .x = x.data,
                .k = static_cast<C>(call.template attr<"k">()),
                .alpha = static_cast<C>(call.template attr<"alpha">()),
                .beta = static_cast<C>(beta),
                .quick = beta == 0.75};
    }
};
