// LAMB, whose steps depend on norms of whole parameters.
#pragma once

#include <cmath>

#include "gradients.hpp"

namespace catena::plugins {

// The moments of Lamb, and r, the direction of its step.
template <class T>
struct LambDirection {
    T decay1, decay2, bias, root, eps, decay;

    explicit LambDirection(const auto& call) {
        const double beta1 = call.template attr<"beta1">(), beta2 = call.template attr<"beta2">();
        const auto t = static_cast<double>(call.template attr<"t">());
        decay1 = static_cast<T>(1 - beta1);
        decay2 = static_cast<T>(1 - beta2);
        bias = static_cast<T>(1 / (1 - std::pow(beta1, t)));
        root = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, t)));
        eps = static_cast<T>(call.template attr<"eps">());
        decay = static_cast<T>(call.template attr<"weight_decay_rate">());
    }
    CATENA_FN void take(T grad, T& m, T& v) const {
        m += decay1 * (grad - m);
        v += decay2 * (grad * grad - v);
    }
    CATENA_FN T operator()(T param, T m, T v) const {
        return bias * m / (math::sqrt(v) * root + eps) + decay * param;
    }
};

struct LambUpdate {
    static constexpr auto about =
        describe(
            "catena.lamb_update",
            "Lamb(lr, beta1, beta2, eps, weight_decay_rate): param -= lr * |param| / |r| * r, "
            "with r = m' / (sqrt(v') + eps) + weight_decay_rate * param\n\n"
            "m' and v' are running means of grad and grad^2 whose bias is corrected. The "
            "quotient is 1 if a norm is 0. Steps have the length lr * |param| (You and others, "
            "\"Large Batch Optimization for Deep Learning\", ICLR 2020).",
            in(param, "grad", state("m", "mean of grad"), state("v", "mean of grad^2")), out(),
            learning_rate(0.001), below_one(attr("beta1", 0.9, "decay of m")),
            below_one(attr("beta2", 0.999, "decay of v")),
            not_negative(attr("eps", 1e-6, "added to the root")),
            weight_decay_rate(0.01, "decoupled weight decay"), step_number)
            .since(2)
            .not_differentiable()
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] t=2")
            .example("param=(3) grad=(3)[0.5,1] m=(3) v=(3)[0.1,1] t=1 weight_decay_rate=0")
            .example("param=(3)[0,0] grad=(3)[0.5,1] m=(3) v=(3)[0.1,1] t=1");
    using types = UpdateTypes;

    static void infer(const auto& s) {
        for (std::size_t i = 1; i < 4; ++i) s.check_shape(i, s.x(0));
    }
    // |param| / |r| from the squares of both, whose quotient may overflow.
    CATENA_FN static double ratio(double param, double r) {
        return param == 0 || r == 0 ? 1 : math::sqrt(param) / math::sqrt(r);
    }

    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = static_cast<std::uint64_t>(
            2 * SumOfSquares::pieces(call.template x<T>(0).size()) * std::int64_t{sizeof(double)});
    }
    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        constexpr std::int64_t piece = SumOfSquares::piece;
        const auto param = call.template mutated<T>(0);
        const auto grad = call.template x<T>(1);
        const auto m = call.template mutated<S>(2);
        const auto v = call.template mutated<S>(3);
        const std::int64_t n = param.size(), pieces = SumOfSquares::pieces(n);
        const LambDirection<T> direction(call);
        double* const part = call.template scratch<double>();  // of param, then of r
        call.parallel(pieces, piece, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t k = begin; k < end; ++k) {
                const std::int64_t from = k * piece, to = std::min(from + piece, n);
                for (std::int64_t i = from; i < to; ++i) direction.take(grad[i], m[i], v[i]);
                part[k] = SumOfSquares::sum(to - from, [&](std::int64_t i) CATENA_LAMBDA {
                    return static_cast<double>(param[from + i]);
                });
                part[pieces + k] = SumOfSquares::sum(to - from, [&](std::int64_t i) CATENA_LAMBDA {
                    const std::int64_t at = from + i;
                    return static_cast<double>(direction(param[at], m[at], v[at]));
                });
            }
        });
        double squares[2] = {};
        for (std::int64_t k = 0; k < pieces; ++k) {
            squares[0] += part[k];
            squares[1] += part[pieces + k];
        }
        const auto step =
            static_cast<T>(call.template attr<"lr">() * ratio(squares[0], squares[1]));
        call.parallel(n, 4, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i)
                param[i] -= step * direction(param[i], m[i], v[i]);
        });
    }
};

CATENA_FUNCTIONS(LambUpdate);

}  // namespace catena::plugins
