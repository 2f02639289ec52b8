// Fully connected layer, on CUDA: products by catena.blas/1. The bias is added by the product itself
// where a plugin can, else laid out before it.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "linear.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Linear> {
    static constexpr bool any_half = false;  // dtypes are passed on

    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto b = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        const Product<T> product = product_of(false, true, y.dim(0), y.dim(1), w.dim(1), x.data,
                                              w.data, y.data, call.adds(0));
        if (!b) return gemm<T>(call.context(), call.raw(), product);
        if (affine<T>(call.context(), call.raw(), product, b.data)) return;
        map(call.queue(), Copy<Stored<T>, Stored<T>, true>(), y.shape, {Operand{b.data, b.shape}},
            {Result{y.data, call.adds(0)}});
        Product<T> onto = product;
        onto.add = true;
        gemm<T>(call.context(), call.raw(), onto);
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(2)) return;
        plan.scratch_bytes = sum_scratch<T>(call.template gy<T>(0).shape, rows);
    }
    template <class T>
    static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const std::int64_t n = x.dim(0);
        if (const auto gx = call.template gx<T>(0))
            gemm<T>(call.context(), call.raw(),
                    product_of(false, false, n, w.dim(1), w.dim(0), gy.data, w.data, gx.data,
                               call.adds(0)));
        if (const auto gw = call.template gx<T>(1))
            gemm<T>(call.context(), call.raw(),
                    product_of(true, false, w.dim(0), w.dim(1), n, gy.data, x.data, gw.data,
                               call.adds(1)));
        if (const auto gb = call.template gx<T>(2))
            sum(call.queue(), gy, rows, gb.data, call.adds(2), call.template scratch<void>());
    }

private:
    static bool rows(std::size_t d) { return d == 0; }

    template <class T>
    static Product<T> product_of(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                                 std::int64_t k, const T* a, const T* b, T* c, bool add) {
        return {.transpose_a = transpose_a,
                .transpose_b = transpose_b,
                .m = m,
                .n = n,
                .k = k,
                .a = a,
                .b = b,
                .c = c,
                .add = add};
    }
};
