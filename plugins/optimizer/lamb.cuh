// LAMB on CUDA: moments, two norms, their quotient, the step.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "lamb.hpp"

namespace catena::plugins {

// Inputs: grad, m, v.
template <class T, class S>
struct LambMoments : cuda::Operation<cuda::Types<T, S, S>, cuda::Types<S, S>, S> {
    __device__ __forceinline__ void operator()(const S* x, S* y) const {
        y[0] = x[1];
        y[1] = x[2];
        direction.take(x[0], y[0], y[1]);
    }
    LambDirection<S> direction;
};
// Inputs: param, m, v. Outputs: the squares of param and of r.
template <class T, class S>
struct LambSquares : cuda::Operation<cuda::Types<T, S, S>, cuda::Types<double, double>, double> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        const double r = direction(x[0], x[1], x[2]);
        y[0] = x[0] * x[0];
        y[1] = r * r;
    }
    LambDirection<double> direction;
};
// Inputs: the sums of the squares.
struct LambRatio : cuda::Operation<cuda::Types<double, double>, cuda::Types<double>, double> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = LambUpdate::ratio(x[0], x[1]);
    }
};
// Inputs: param, m, v, the quotient.
template <class T, class S>
struct LambStep : cuda::Operation<cuda::Types<T, S, S, double>, cuda::Types<T>, S> {
    __device__ __forceinline__ void operator()(const S* x, S* y) const {
        y[0] = x[0] - lr * x[3] * direction(x[0], x[1], x[2]);
    }
    LambDirection<S> direction;
    S lr;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LambUpdate> {
    template <class T, class S>
    using Squares = catena::plugins::LambSquares<T, S>;

    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        const Squares<T, S> squares{{}, catena::plugins::LambDirection<double>(call)};
        plan.scratch_bytes =
            3 * sizeof(double) + sum_scratch(squares, call.template x<T>(0).shape, every_axis);
    }
    template <class T, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto param = call.template mutated<T>(0);
        const auto m = call.template mutated<S>(2), v = call.template mutated<S>(3);
        const Shape shape = param.shape, one;
        const Operand p{param.data, shape}, first{m.data, shape}, second{v.data, shape};
        const LambDirection<S> direction(call);
        double* const norms = call.template scratch<double>();
        map(call.queue(), LambMoments<T, S>{{}, direction}, shape,
            {Operand{call.template x<T>(1).data, shape}, first, second},
            {Result{m.data}, Result{v.data}});
        const Operand in[] = {p, first, second};
        for (int i = 0; i < 2; ++i)
            sum(call.queue(), Squares<T, S>{{}, LambDirection<double>(call)}, shape, in, i,
                every_axis, norms + i, false, norms + 3);
        map(call.queue(), LambRatio(), one, {Operand{norms, one}, Operand{norms + 1, one}},
            {Result{norms + 2}});
        map(call.queue(), LambStep<T, S>{{}, direction, static_cast<S>(call.template attr<"lr">())},
            shape, {p, first, second, Operand{norms + 2, one}}, {Result{param.data}});
    }
};
