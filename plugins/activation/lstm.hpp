// Long short-term memory: one step.
#pragma once

#include <limits>

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Lstm {
    static constexpr auto about =
        describe(
            "catena.lstm",
            "c = tanh(a) sigmoid(i) + c_prev sigmoid(f), h = tanh(c) sigmoid(o)\n\n"
            "Unit j takes a, i, f and o from the channels 4 j to 4 j + 3 of x. Where x has fewer "
            "rows than the state, the rows beyond keep their c, and h has x's rows. (Graves, "
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
        s.check(c.size() >= 2, "c_prev.ndim", "at least 2", c.size());
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

    // x as (N, units, 4, ...): each gate is a slice of it.
    static void gradient(const auto& g) {
        const Layout at(g.x_shape(0), g.x_shape(1));
        const Var x = reshape(g.x(1), at.gates());
        const auto gate = [&](std::int64_t k) {
            const std::int64_t begin[] = {0, 0, k};
            const std::int64_t end[] = {at.rows, at.units, k + 1};
            return reshape(slice(x, begin, end), at.cells());
        };
        // The rows that x has too, and those beyond.
        const auto own = [&](const Var& c) { return at.rows_of(c, 0, at.rows); };
        const Var a = math::tanh(gate(0));
        const Var i = math::sigmoid(gate(1));
        const Var f = math::sigmoid(gate(2));
        const Var o = math::sigmoid(gate(3));
        const Var t = math::tanh(own(g.y(0)));
        const Var gc = own(g.gy(0)) + g.gy(1) * o * (1.0 - t * t);
        if (g.wants(0)) {
            const Var beyond = at.rows_of(g.gy(0), at.rows, at.batch);
            const Var within = or_zeros(gc * f, f, at.cells());
            if (at.rows == at.batch) g.gx(0, within);
            else
                g.gx(0, call<"catena.concat">({within, or_zeros(beyond, f, at.beyond())},
                                              {set("axis", 0)}));
        }
        if (g.wants(1)) {
            const Var gates[] = {gc * i * (1.0 - a * a), gc * a * (i * (1.0 - i)),
                                 gc * own(g.x(0)) * (f * (1.0 - f)), g.gy(1) * t * (o * (1.0 - o))};
            Var parts[4];
            for (std::size_t k = 0; k < 4; ++k)
                parts[k] = reshape(or_zeros(gates[k], f, at.cells()), at.gate());
            const Var all =
                call<"catena.concat">({parts[0], parts[1], parts[2], parts[3]}, {set("axis", 2)});
            g.gx(1, reshape(all, g.x_shape(1)));
        }
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto c = call.template y<T>(0);
        const auto h = call.template y<T>(1);
        const bool add_c = call.adds(0);
        const bool add_h = call.adds(1);
        const Layout at(c_prev.shape, x.shape);
        at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
            Gates<T> v;
            T cells[most];
            T hidden[most];
            load(at, x.data + q, n, v);
            const T* const prev = c_prev.data + p;
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                cells[k] =
                    math::tanh(v.a[k]) * math::sigmoid(v.i[k]) + math::sigmoid(v.f[k]) * prev[k];
                hidden[k] = math::sigmoid(v.o[k]) * math::tanh(cells[k]);
            }
            put(c.data + p, cells, n, add_c);
            put(h.data + p, hidden, n, add_h);
        });
        const std::int64_t done = at.rows * at.units * at.inner;
        put(c.data + done, c_prev.data + done, c.size() - done, add_c);
    }

    // The gates are computed again: they take less time than memory to keep them.
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
        const Layout at(c_prev.shape, x.shape);
        at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
            Gates<T> v;
            T of_c[most];
            T of_h[most];
            T of_prev[most];
            load(at, x.data + q, n, v);
            get(of_c, gc ? gc.data + p : nullptr, n);
            get(of_h, gh ? gh.data + p : nullptr, n);
            const T* const cells = c.data + p;
            const T* const prev = c_prev.data + p;
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                const T a = math::tanh(v.a[k]);
                const T i = math::sigmoid(v.i[k]);
                const T f = math::sigmoid(v.f[k]);
                const T o = math::sigmoid(v.o[k]);
                const T t = math::tanh(cells[k]);
                const T g = of_c[k] + of_h[k] * o * (T(1) - t * t);
                of_prev[k] = g * f;
                v.a[k] = g * i * (T(1) - a * a);
                v.i[k] = g * a * (i * (T(1) - i));
                v.f[k] = g * prev[k] * (f * (T(1) - f));
                v.o[k] = of_h[k] * t * (o * (T(1) - o));
            }
            if (gprev) put(gprev.data + p, of_prev, n, add_prev);
            if (gx) save(at, v, n, gx.data + q, add_x);
        });
        const std::int64_t done = at.rows * at.units * at.inner;
        if (gprev && gc) put(gprev.data + done, gc.data + done, c.size() - done, add_prev);
        else if (gprev && !add_prev) std::fill_n(gprev.data + done, c.size() - done, T(0));
    }

private:
    static constexpr std::int64_t most = 64;  // cells at a time

    template <class T>
    struct Gates {
        T a[most], i[most], f[most], o[most];
    };

    // A shape by value.
    struct Extents {
        operator Shape() const { return {values, ndim}; }  // NOLINT: is a shape
        std::int64_t values[CATENA_MAX_NDIM + 1];
        std::size_t ndim;
    };

    struct Layout {
        Layout(Shape c, Shape x) : trailing(c.subspan(2)), batch(c[0]), rows(x[0]), units(c[1]) {
            for (const std::int64_t d : trailing) inner *= d;
        }
        // Runs of cells that lie side by side: body(p, q, n) for n cells from p on, whose first gate
        // is at x[q].
        template <class Call, class Body>
        void for_each_run(const Call& call, const Body& body) const {
            const std::int64_t line = inner == 1 ? units : inner;
            const std::int64_t lines = inner == 1 ? rows : rows * units;
            const std::int64_t pieces = (line + most - 1) / most;
            auto run = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                for (std::int64_t u = begin; u < end; ++u) {
                    const std::int64_t first = u % pieces * most;
                    const std::int64_t p = u / pieces * line;
                    body(p + first, 4 * p + (inner == 1 ? 4 * first : first),
                         std::min(most, line - first));
                }
            };
            parallel<Call::isa>(call.context(), lines * pieces, 16 * std::min(line, most), run);
        }

        Extents gates() const { return with({rows, units, 4}); }
        Extents gate() const { return with({rows, units, 1}); }
        Extents cells() const { return with({rows, units}); }
        Extents beyond() const { return with({batch - rows, units}); }
        Var rows_of(const Var& c, std::int64_t from, std::int64_t to) const {
            if (c.is_constant() || (from == 0 && to == batch)) return c;
            return slice(c, Shape(&from, 1), Shape(&to, 1));
        }

        Shape trailing;
        std::int64_t batch;
        std::int64_t rows;  // of x
        std::int64_t units;
        std::int64_t inner = 1;

    private:
        Extents with(std::initializer_list<std::int64_t> head) const {
            Extents e;
            std::int64_t* const end = std::copy(head.begin(), head.end(), e.values);
            std::copy(trailing.begin(), trailing.end(), end);
            e.ndim = head.size() + trailing.size();
            return e;
        }
    };

    static Var slice(const Var& x, Shape begin, Shape end) {
        return call<"catena.get_item">({x}, {set("begin", begin), set("end", end)});
    }
    // Zeros where no gradient came.
    static Var or_zeros(const Var& v, const Var& like, Shape shape) {
        return v.is_constant() ? broadcast_to(scalar_like(like, 0), shape) : v;
    }

    template <class T>
    CATENA_KERNEL static void load(const Layout& at, const T* x, std::int64_t n, Gates<T>& v) {
        const std::int64_t step = at.inner;
        if (step == 1) {
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                v.a[k] = x[4 * k];
                v.i[k] = x[4 * k + 1];
                v.f[k] = x[4 * k + 2];
                v.o[k] = x[4 * k + 3];
            }
            return;
        }
        std::copy_n(x, n, v.a);
        std::copy_n(x + step, n, v.i);
        std::copy_n(x + 2 * step, n, v.f);
        std::copy_n(x + 3 * step, n, v.o);
    }
    template <class T>
    CATENA_KERNEL static void save(const Layout& at, const Gates<T>& v, std::int64_t n, T* gx,
                                   bool add) {
        const std::int64_t step = at.inner;
        if (step == 1) {
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                gx[4 * k] = (add ? gx[4 * k] : T(0)) + v.a[k];
                gx[4 * k + 1] = (add ? gx[4 * k + 1] : T(0)) + v.i[k];
                gx[4 * k + 2] = (add ? gx[4 * k + 2] : T(0)) + v.f[k];
                gx[4 * k + 3] = (add ? gx[4 * k + 3] : T(0)) + v.o[k];
            }
            return;
        }
        put(gx, v.a, n, add);
        put(gx + step, v.i, n, add);
        put(gx + 2 * step, v.f, n, add);
        put(gx + 3 * step, v.o, n, add);
    }
    template <class T>
    CATENA_KERNEL static void get(T* to, const T* from, std::int64_t n) {
        if (from == nullptr) std::fill_n(to, n, T(0));
        else std::copy_n(from, n, to);
    }
    template <class T>
    CATENA_KERNEL static void put(T* to, const T* from, std::int64_t n, bool add) {
        if (!add) return void(std::copy_n(from, n, to));
        CATENA_LOOP
        for (std::int64_t k = 0; k < n; ++k) to[k] += from[k];
    }
};

}  // namespace catena::plugins
