// Long short-term memory: one step.
#pragma once

#include "lstm_cell.hpp"

namespace catena::plugins {

struct Lstm {
    static constexpr auto about =
        describe(
            "catena.lstm",
            "c = tanh(a) sigmoid(i) + c_prev sigmoid(f), h = tanh(c) sigmoid(o)\n\n"
            "Unit j uses channels 4 j to 4 j + 3 of x as a, i, f and o. If x has fewer rows than "
            "the state, the remaining rows keep their c, and h has the rows of x. (Graves, "
            "\"Supervised Sequence Labelling with Recurrent Neural Networks\", 2012, without "
            "peepholes.)",
            in(Port("c_prev", "cells (B, units, ...)"),
               Port("x", "a, i, f, o (N, 4 units, ...), N <= B")),
            out(Port("c", "(B, units, ...)"), Port("h", "(N, units, ...)")))
            .example("c_prev=(2,3) x=(2,12)")
            .example("c_prev=(3,2) x=(2,8)")
            .example("c_prev=(2,2,3) x=(2,8,3)")
            .example("c_prev=(2,1,2,2) x=(1,4,2,2)");
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(0);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Shape c = s.x(0), x = s.x(1);
        check_shapes(s, c, x);
        std::int64_t h[CATENA_MAX_NDIM];
        std::copy(c.begin(), c.end(), h);
        h[0] = x[0];
        s.y(0, c);
        s.y(1, Shape(h, c.size()));
    }
    static void check_shapes(const auto& s, Shape c, Shape x) {
        s.check_least_ndim(0, 2);
        if (x.size() != c.size() || x[1] != times(4, c[1]) || x[0] > c[0] ||
            !std::ranges::equal(x.subspan(2), c.subspan(2))) [[unlikely]] {
            s.check(x.size() == c.size(), "x.ndim", text_of(c.size()) + " as c_prev", x.size());
            s.check(x[1] == times(4, c[1]), "x.shape[1]",
                    text_of(times(4, c[1])) + ", 4 times c_prev's", x[1]);
            s.check(x[0] <= c[0], "x.shape[0]", "at most c_prev's " + text_of(c[0]), x[0]);
            s.check(false, "x.shape[2:]", c.subspan(2), x.subspan(2));
        }
    }

    static std::array<Var, 2> compose(const auto& g) {
        const Meta cells = g.x_meta(0), gates = g.x_meta(1);
        check_shapes(g, cells.shape(), gates.shape());
        const Var c_prev = g.x(0), x = g.x(1);
        const std::int64_t rows = x.dim(0);
        const LstmGates<Var> v = gates_in(x).activated();
        const Var c = v.cell(slice(c_prev, 0, 0, rows)), h = v.hidden(math::tanh(c));
        return {rows < c_prev.dim(0) ? concat({c, slice(c_prev, 0, rows)}, 0) : c, h};
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto c = call.template y<T>(0);
        const LstmLayout at(c_prev.shape, x.shape);
        run_step(call, LstmStep<T>{.rows = at.rows,
                                   .units = at.units,
                                   .inner = at.inner,
                                   .x = x.data,
                                   .c_prev = c_prev.data,
                                   .c = c.data,
                                   .h = call.template y<T>(1).data,
                                   .add_c = call.adds(0),
                                   .add_h = call.adds(1)});
        put_rest(call, at, c_prev.data, c, call.adds(0));
    }

    // Recomputes the gates, which costs less than the memory for keeping them.
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const T* const gc = call.template gy<T>(0).data;
        const auto gprev = call.template gx<T>(0);
        const LstmLayout at(c_prev.shape, x.shape);
        run_step(call, LstmStepGradient<T>{.rows = at.rows,
                                           .units = at.units,
                                           .inner = at.inner,
                                           .activated = 0,
                                           .gates = x.data,
                                           .c = call.template y<T>(0).data,
                                           .c_prev = c_prev.data,
                                           .gh = call.template gy<T>(1).data,
                                           .gc = gc,
                                           .of_gates = call.template gx<T>(1).data,
                                           .gc0 = gprev.data,
                                           .add_gc0 = call.adds(0),
                                           .add_of_gates = call.adds(1)});
        if (gprev) put_rest(call, at, gc, gprev, call.adds(0));
    }

private:
    // Copies the rows that x lacks; a null `from` counts as zeros.
    template <class T>
    CATENA_KERNEL static void put_rest(const auto& call, const LstmLayout& at, const T* from,
                                       Tensor<T> to, bool add) {
        const std::int64_t done = at.rows * at.units * at.inner, rest = to.size() - done;
        if (rest > 0)
            put_elements(call, from != nullptr ? from + done : nullptr,
                         Tensor<T>{to.data + done, Shape(&rest, 1)}, add);
    }
};

CATENA_FUNCTIONS(Lstm);

}  // namespace catena::plugins
