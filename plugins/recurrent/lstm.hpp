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

    static void infer(const auto& s) {
        const Shape c = s.x(0);
        const Shape x = s.x(1);
        s.check_least_ndim(0, 2);
        if (x.size() != c.size() || x[1] != times(4, c[1]) || x[0] > c[0] ||
            !std::ranges::equal(x.subspan(2), c.subspan(2))) [[unlikely]] {
            s.check(x.size() == c.size(), "x.ndim", text_of(c.size()) + " as c_prev", x.size());
            s.check(x[1] == times(4, c[1]), "x.shape[1]",
                    text_of(times(4, c[1])) + ", 4 times c_prev's", x[1]);
            s.check(x[0] <= c[0], "x.shape[0]", "at most c_prev's " + text_of(c[0]), x[0]);
            s.check(false, "x.shape[2:]", c.subspan(2), x.subspan(2));
        }
        std::int64_t h[CATENA_MAX_NDIM];
        std::copy(c.begin(), c.end(), h);
        h[0] = x[0];
        s.y(0, c);
        s.y(1, Shape(h, c.size()));
    }

    static void gradient(const auto& g) {
        const LstmLayout at(g.x_shape(0), g.x_shape(1));
        const LstmGradients gx = lstm_gradients(at, at.own(g.x(0)), g.x(1), at.own(g.y(0)),
                                                at.own(g.gy(0)), g.gy(1), g.wants(0), g.wants(1));
        if (g.wants(0) && at.rows == at.batch) g.gx(0, gx.c_prev);
        else if (g.wants(0)) {
            const Var beyond = or_zeros(rows_of(g.gy(0), at.rows, at.batch), g.x(1), at.beyond());
            g.gx(0, call<"catena.concat">({gx.c_prev, beyond}, {set("axis", 0)}));
        }
        if (g.wants(1)) g.gx(1, gx.x);
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto c = call.template y<T>(0);
        const auto h = call.template y<T>(1);
        const bool add_c = call.adds(0);
        const bool add_h = call.adds(1);
        const LstmLayout at(c_prev.shape, x.shape);
        at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
            LstmRun<T> gates;
            T cells[LstmRun<T>::most];
            T hidden[LstmRun<T>::most];
            gates.load(x.data + q, at.inner, n);
            const T* const prev = c_prev.data + p;
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                const LstmGates<T> v = gates[k].activated();
                cells[k] = v.cell(prev[k]);
                hidden[k] = v.hidden(math::tanh(cells[k]));
            }
            LstmRun<T>::put(c.data + p, cells, n, add_c);
            LstmRun<T>::put(h.data + p, hidden, n, add_h);
        });
        const std::int64_t done = at.rows * at.units * at.inner;
        LstmRun<T>::put(c.data + done, c_prev.data + done, c.size() - done, add_c);
    }

    // Recomputes the gates, which costs less than the memory for keeping them.
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto c = call.template y<T>(0);
        const auto gc = call.template gy<T>(0);
        const auto gh = call.template gy<T>(1);
        const auto gprev = call.template gx<T>(0);
        const auto gx = call.template gx<T>(1);
        const bool add_prev = call.adds(0);
        const bool add_x = call.adds(1);
        const LstmLayout at(c_prev.shape, x.shape);
        at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
            LstmRun<T> gates;
            T of_c[LstmRun<T>::most];
            T of_h[LstmRun<T>::most];
            T of_prev[LstmRun<T>::most];
            gates.load(x.data + q, at.inner, n);
            LstmRun<T>::get(of_c, gc ? gc.data + p : nullptr, n);
            LstmRun<T>::get(of_h, gh ? gh.data + p : nullptr, n);
            const T* const cells = c.data + p;
            const T* const prev = c_prev.data + p;
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                const LstmGates<T> v = gates[k].activated();
                const T t = math::tanh(cells[k]);
                const T g = v.of_cell(of_c[k], of_h[k], t);
                of_prev[k] = g * v.f;
                gates.set(k, v.gradient(g, of_h[k], t, prev[k]));
            }
            if (gprev) LstmRun<T>::put(gprev.data + p, of_prev, n, add_prev);
            if (gx) gates.store(gx.data + q, at.inner, n, add_x);
        });
        const std::int64_t done = at.rows * at.units * at.inner;
        if (gprev && gc)
            LstmRun<T>::put(gprev.data + done, gc.data + done, c.size() - done, add_prev);
        else if (gprev && !add_prev) std::fill_n(gprev.data + done, c.size() - done, T(0));
    }
};

CATENA_FUNCTIONS(Lstm);

}  // namespace catena::plugins
