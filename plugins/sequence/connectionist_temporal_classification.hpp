// The loss of label sequences that are shorter than their inputs.
#pragma once

#include "steps.hpp"

namespace catena::plugins {

// Optional numbers for the sequences.
constexpr Port numbers(const char* name, const char* type, const char* doc) {
    return Port(name, doc).of(type).optional().not_differentiable();
}

struct ConnectionistTemporalClassification {
    static constexpr auto about =
        describe(
            "catena.connectionist_temporal_classification",
            "loss = the negative log-likelihood of label sequences that are shorter than their "
            "inputs, reduced\n\n"
            "A sequence of labels stands for all sequences of the inputs' length that become "
            "it if repeated symbols count once and blanks are then left out. The "
            "probabilities of the symbols at each step are softmax(x). (Graves et al., ICML "
            "2006.)",
            in(Port("x", "the scores of the symbols: (steps, N, symbols)"),
               Port("t", "labels (N, length)").of("I").not_differentiable(),
               numbers("input_length", "J",
                       "the number of steps of each sequence: (N,); missing: all"),
               numbers("label_length", "K",
                       "the number of labels of each sequence: (N,); missing: all")),
            out("loss"), required<std::int64_t>("blank_symbol", "the number of the blank"), reduce)
            .example("x=(3,2,3) t=(2,2)[1,2] blank_symbol=0")
            .example(
                "x=(3,2,3) t=(2,1)[0,1] input_length=(2)[2,3] label_length=(2)[0,1] "
                "blank_symbol=2 reduce=\"no\"");

    static Var compose(const auto& g) {
        g.check_ndim(0, 3);
        g.check_ndim(1, 2);
        const Var t = g.x(1);
        const std::int64_t steps = g.x(0).dim(0), n = g.x(0).dim(1), length = t.dim(1);
        check_steps(g, "x.shape[0]", steps);
        g.check_shape(1, {n, length});
        g.check_shape(2, {n});
        g.check_shape(3, {n});
        // The labels between blanks, and the scores of these at each step.
        const std::int64_t states = 2 * length + 1;
        const auto blank = static_cast<double>(g.template attr<"blank_symbol">());
        const Var blanks = full({n, length + 1, 1}, blank, t.dtype());
        const Var labels = pad(reshape(t, {n, length, 1}), {0, 0, 0, 1, 0, 0});
        const Var path =
            slice(reshape(concat({blanks, labels}, 2), {n, 2 * length + 2}), 1, 0, states);
        const Var x =
            take_along_axis(call<"catena.log_softmax">({widened(g.x(0))}, {set("axis", 2)}),
                            broadcast_to(path, {steps, n, states}), 2);
        const catena_dtype dtype = x.dtype();
        constexpr double never = -1e10;  // the logarithm of 0, with a gradient
        // A step moves on by one state, or by two if it leaves out a blank between different labels.
        const std::int64_t skips = std::max<std::int64_t>(states - 2, 0);
        const Var equal = slice(path, 1, states - skips, states) == slice(path, 1, 0, skips);
        const Var skip = pad(cast(equal, dtype) * never, {0, 0, states - skips, 0});
        const Var two_states = full({n, 2}, never, dtype);
        Var alpha = pad(full({n, 1}, 0, dtype), {0, 0, 0, states - 1}, never);
        for (std::int64_t i = 0; i < steps; ++i) {
            const Var from = concat({two_states, alpha}, 1);
            const Var one = slice(from, 1, 1, states + 1), two = slice(from, 1, 0, states) + skip;
            const Var at = reshape(slice(x, 0, i, i + 1), {n, states});
            const Var next = log_sum(stack({alpha, one, two}, 0), 0) + at;
            alpha = g.has(2) ? math::where(exceeds(column(g.x(2)), i), next, alpha) : next;
        }
        if (!g.has(3)) return reduced(g, -log_sum(slice(alpha, 1, skips, states), 1), 0);
        const Var last = 2.0 * column(cast(g.x(3), dtype_of<std::int64_t>()));
        const Var label = take_along_axis(alpha, math::max(last - 1.0, 0.0), 1);
        const Var ends[] = {take_along_axis(alpha, last, 1),
                            math::where(exceeds(last, 0), label, never)};
        return reduced(g, -log_sum(concat(ends, 1), 1), 0);
    }

private:
    static Var column(const Var& x) { return reshape(x, {x.dim(0), 1}); }
    static Var exceeds(const Var& x, std::int64_t number) {  // bool
        return call<"catena.is_greater">({x, static_cast<double>(number)});
    }
};

CATENA_FUNCTIONS(ConnectionistTemporalClassification);

}  // namespace catena::plugins
