// Functions beside the update rules: weight decay and clipping of gradients, averages of parameters.
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

// Weight decay: adds the gradient of rate / 2 * |param|^2.
struct DecayUpdate {
    static constexpr auto about =
        describe("catena.decay_update", "grad += rate * param", in(Port("grad").mutated(), "param"),
                 out(), not_negative(required<double>("rate", "the factor")))
            .internal()
            .example("grad=(2,3) param=(2,3) rate=0.5")
            .example("grad=() param=() rate=0.01");

    template <class T>
    CATENA_FN static void update(T& grad, T param, T rate) {
        grad += rate * param;
    }
};

// The square of the L2 norm, in float64 for every dtype.
struct SumOfSquares {
    static constexpr auto about = describe("catena.sum_of_squares", "y = the sum of x^2", in("x"),
                                           out(Port("y", "the sum (), float64").of("S")))
                                      .not_differentiable()
                                      .internal()
                                      .example("x=(2,3)")
                                      .example("x=(3,50)")
                                      .example("x=()");
    using types = Rows<Row<float, double>, Row<double, double>>;

    static void infer(const auto& s) { s.y(0, {}, dtype_of<double>()); }

    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes =
            static_cast<std::uint64_t>(pieces(call.template x<T>(0).size())) * sizeof(S);
    }
    // The pieces do not depend on the number of threads, so any number gives the same bits.
    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const std::int64_t n = x.size();
        S* const part = call.template scratch<S>();
        call.parallel(pieces(n), piece, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t k = begin; k < end; ++k) {
                const T* const p = x.data + k * piece;
                part[k] = sum(std::min(piece, n - k * piece),
                              [&](std::int64_t i) CATENA_LAMBDA { return static_cast<S>(p[i]); });
            }
        });
        S total = 0;
        for (std::int64_t k = 0; k < pieces(n); ++k) total += part[k];
        store(call.template y<S>(0)[0], call.adds(0), total);
    }

    static constexpr std::int64_t piece = 16384;
    static constexpr std::int64_t pieces(std::int64_t n) { return (n + piece - 1) / piece; }
    // The sum of the squares of value(0) .. value(n - 1).
    CATENA_KERNEL static double sum(std::int64_t n, const auto& value) {
        constexpr std::int64_t lanes = 32;
        double lane[lanes] = {};
        std::int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
            for (std::int64_t j = 0; j < lanes; ++j) lane[j] += value(i + j) * value(i + j);
        double total = 0;
        for (std::int64_t j = 0; j < lanes; ++j) total += lane[j];
        for (; i < n; ++i) total += value(i) * value(i);
        return total;
    }
};

struct ClipFactor {
    static constexpr auto about =
        describe("catena.clip_factor", "y = maxnorm / sqrt(squares) where that is below 1, else 1",
                 in(Port("squares", "the sum of squares ()")), out(Port("y", "()")),
                 not_negative(required<double>("maxnorm", "the largest norm")))
            .not_differentiable()
            .internal()
            .example("squares=()[0.5,1] maxnorm=0.25")
            .example("squares=()[0.5,1] maxnorm=2");
    using types = Rows<Row<double>>;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        s.check_ndim(0, 0);
        s.y(0, {});
    }
    // Returns 1 if the norm is NaN.
    CATENA_FN static double factor(double squares, double maxnorm) {
        const double norm = std::sqrt(squares);
        return norm > maxnorm ? maxnorm / norm : 1.0;
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        store(call.template y<T>(0)[0], call.adds(0),
              factor(call.template x<T>(0)[0], call.template attr<"maxnorm">()));
    }
};

// Scales a gradient by a factor in the memory of its device.
struct ScaleUpdate {
    static constexpr auto about =
        describe("catena.scale_update", "x *= factor",
                 in(Port("x").mutated(), Port("factor", "(); float32 for halves").of("S")), out())
            .internal()
            .example("x=(2,3) factor=()[0.5,2]")
            .example("x=() factor=()[0.5,2]");
    using types = UpdateTypes;
    static constexpr auto single_x = ports(1);

    template <class T>
    CATENA_FN static void update(T& x, T factor) {
        x *= factor;
    }
};

// Exponential moving average of a parameter.
struct AverageUpdate {
    static constexpr auto about =
        describe("catena.average_update", "average += rate * (param - average)",
                 in("param", state("average", "float32 for halves")), out(),
                 required<double>("rate", "the weight of param").range(0, 1))
            .internal()
            .example("param=(2,3) average=(2,3) rate=0.25");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T param, T& average, T rate) {
        average += rate * (param - average);
    }
};

CATENA_FUNCTIONS(DecayUpdate, SumOfSquares, ClipFactor, ScaleUpdate, AverageUpdate);

}  // namespace catena::plugins
