// root_mean_square: kernels that are formulas, compiled on the first call, for any device.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/formula.hpp>

using namespace catena::plugin;

// [formulas]
// `before` is the old value of the output, to which the result is added: y itself, used only if
// `add` is true; in the gradient, gx itself or 0.
inline constinit const Formula root_mean_square = Formula::reduction(
    "T x, T eps, raw T before, bool add", "T y", /*map=*/"x * x", /*reduce=*/"a + b",
    /*finish=*/"y = (add ? T(before[j]) : T(0)) + sqrt(a / n + eps)", /*identity=*/"0",
    "root_mean_square");
inline constinit const Formula root_mean_square_gradient(
    "T x, T y, T gy, T columns, T before", "T gx", "gx = before + gy * share(x, y * columns)",
    "root_mean_square_gradient",
    {.preamble = "CATENA_FN T share(T part, T whole) { return part / whole; }"});
// [/formulas]

struct RootMeanSquare {
    static constexpr auto about =
        describe("org.example.root_mean_square", "y = sqrt(mean of x^2 along the last axis + eps)",
                 in(Port("x", "(N, K)")), out(Port("y", "(N, 1)")),
                 attr("eps", 1e-6, "keeps the gradient finite at 0"))
            .example("x=(2,3)")
            .example("x=(3,1) eps=0.5");
    static constexpr auto retain_x = ports(0);
    static constexpr auto retain_y = ports(0);

    static void infer(const auto& s) {
        s.check(s.x(0).size() == 2, "x.ndim", 2, s.x(0).size());
        s.check(s.x(0)[1] > 0, "x.shape[1]", "at least 1", s.x(0)[1]);
        s.y(0, {s.x(0)[0], 1});
    }
    static void gradient(const auto& g) {
        const auto columns = static_cast<double>(g.x_shape(0)[1]);
        g.gx(0, g.gy(0) * g.x(0) / (g.y(0) * columns));
    }

    // The kernels of all devices; this code depends on no device.
    // [kernels]
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const catena_call& c = call.raw();
        if (c.phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = root_mean_square.scratch_bytes(
                call.context(), c, {c.x[0], call.template attr<"eps">(), c.y[0], false}, {c.y[0]},
                {.axes = last, .keepdims = true});
    }
    template <class T>
    static void forward(const auto& call) {
        const catena_call& c = call.raw();
        root_mean_square.run(call.context(), c,
                             {c.x[0], call.template attr<"eps">(), c.y[0], call.adds(0)}, {c.y[0]},
                             {.axes = last, .keepdims = true});
    }
    template <class T>
    static void backward(const auto& call) {
        const catena_call& c = call.raw();
        const auto columns = static_cast<double>(c.x[0]->dl.shape[1]);
        const FormulaArgument gy = c.gy[0] != nullptr ? FormulaArgument(c.gy[0]) : 0;
        const FormulaArgument before = call.adds(0) ? FormulaArgument(c.gx[0]) : 0;
        root_mean_square_gradient.run(call.context(), c, {c.x[0], c.y[0], gy, columns, before},
                                      {c.gx[0]});
    }
    // [/kernels]

private:
    static constexpr std::int32_t last[] = {-1};
};
