// Gaussian error linear units on CUDA.
#pragma once

#include <catena/plugin/cuda/formula.cuh>

#include "gelu.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Gelu> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::Gelu::with_formula(call, [&]<class Formula>(Formula) {
            forward_formula<Formula, T>(call.queue(), call.raw());
        });
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::Gelu::with_formula(call, [&]<class Formula>(Formula) {
            backward_formula<Formula, T>(call.queue(), call.raw());
        });
    }
};
