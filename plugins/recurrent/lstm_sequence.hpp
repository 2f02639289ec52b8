// Long short-term memory: a layer over whole sequences.
#pragma once

#include <utility>
#include <vector>

#include <catena/plugin/blas.hpp>

#include "lstm_cell.hpp"
#include "steps.hpp"

namespace catena::plugins {

// The cells of a step. A null pointer stands for zeros, or for what is not wanted.
template <class T>
struct LstmStep {
    std::int64_t rows, units;
    const T* x;           // a, i, f, o
    const T* from_state;  // added to x; may be where gates are
    const T* c_prev;
    T* gates;  // activated
    T* c;
    T* h;
};
template <class T>
struct LstmStepGradient {
    std::int64_t rows, units;
    std::int64_t rows_after;  // to which gradients come from the step after
    const T* gates;
    const T* c;
    const T* c_prev;
    const T* gh;  // of this step's outputs
    const T* gc;
    const T* gh_after;
    const T* gc_after;  // may be where gprev is
    T* gprev;
    bool add_prev;
    T* of_gates;
};

// A device is an object with
//     run(LstmStep<T>), run(LstmStepGradient<T>)
//     add(n, from, to), zero(n, to)
// What it is asked for comes one after the other.
struct LstmSequence {
    static constexpr auto about =
        describe(
            "catena.lstm_sequence",
            "each step's c = tanh(a) sigmoid(i) + c' sigmoid(f), h = tanh(c) sigmoid(o), where (a, "
            "i, "
            "f, o) = x + h' W^T of c' and h' of the step before\n\n"
            "The same as catena.lstm step by step, in less time. Unit j takes a, i, f and o from "
            "the "
            "channels 4 j to 4 j + 3. Texts of different lengths lie together as (rows in all, 4 "
            "units), a step after the other, longest text first: `rows` says how many go on at "
            "each "
            "step, and a step's rows follow the first rows of the step before. (Hochreiter and "
            "Schmidhuber, \"Long Short-Term Memory\", 1997; with the forget gates of Gers et al., "
            "2000.)",
            in(Port("x", "(steps, N, 4 units), or (rows in all, 4 units)"),
               Port("W", "of the state: (4 units, units)"),
               Port("h0", "before the first step (N, units); missing: zeros").optional(),
               Port("c0", "before the first step (N, units); missing: zeros").optional()),
            out(Port("h", "(steps, N, units), or (rows in all, units)"), Port("c", "as h"),
                Port("gates", "tanh(a), sigmoid(i), sigmoid(f), sigmoid(o): as x").hidden()),
            attr("rows", Ints{}, "rows of each step, never more than before; empty: N of each"))
            .example("x=(3,2,8) W=(8,2) h0=(2,2) c0=(2,2)")
            .example("x=(2,3,4) W=(4,1)")
            .example("x=(6,8) W=(8,2) h0=(3,2) c0=(3,2) rows=(3,2,1)")
            .example("x=(5,12) W=(12,3) rows=(2,2,1)");
    static constexpr auto retain_x = ports(0, 1, 2, 3);
    static constexpr auto retain_y = ports(0, 1, 2);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        const Ints rows = s.template attr<"rows">();
        if (x.size() != (rows.empty() ? 3u : 2u)) [[unlikely]]
            s.check(false, "x.ndim", rows.empty() ? "3, or 2 with rows" : "2, for there are rows",
                    x.size());
        s.check(w.size() == 2, "W.ndim", 2, w.size());
        if (w[0] != times(4, w[1])) [[unlikely]]
            s.check(false, "W.shape[0]", text_of(times(4, w[1])) + ", 4 times its columns", w[0]);
        if (x.back() != w[0]) [[unlikely]]
            s.check(false, rows.empty() ? "x.shape[2]" : "x.shape[1]",
                    text_of(w[0]) + " as W's rows", x.back());
        std::int64_t left = x[0];
        for (std::size_t t = 0; t < rows.size(); ++t) {
            const std::int64_t most = std::min(left, t > 0 ? rows[t - 1] : left);
            if (rows[t] < 0 || rows[t] > most) [[unlikely]]
                s.check(false, ("rows[" + std::to_string(t) + "]").c_str(),
                        "from 0 to " + std::to_string(most), rows[t], CATENA_E_INVALID);
            left -= rows[t];
        }
        if (!rows.empty() && left != 0) [[unlikely]]
            s.check(false, "rows", "a sum of " + std::to_string(x[0]) + ", x's rows", x[0] - left,
                    CATENA_E_INVALID);
        const std::int64_t state[] = {rows.empty() ? x[1] : rows[0], w[1]};
        for (const std::size_t i : {std::size_t{2}, std::size_t{3}})
            if (s.has(i))
                s.check(std::ranges::equal(s.x(i), state), i == 2 ? "h0.shape" : "c0.shape",
                        Shape(state), s.x(i));
        std::int64_t shape[3];
        std::copy(x.begin(), x.end(), shape);
        shape[x.size() - 1] = w[1];
        s.y(0, Shape(shape, x.size()));
        s.y(1, Shape(shape, x.size()));
        s.y(2, x);
    }

    // The steps of the kernel, one function at a time.
    static void gradient(const auto& g) {
        const Steps steps = steps_of(g, g.x_shape(0));
        const std::int64_t units = g.x_shape(1)[1];
        const auto flat = [&](const Var& v, std::int64_t width) {
            return v.is_constant() ? v : reshape(v, {steps.total(), width});
        };
        const auto part = [](const Var& v, std::int64_t from, std::int64_t n) {
            return v.is_constant() ? v : rows_of(v, from, from + n);
        };
        // What a later, smaller step leaves to n rows.
        const auto padded = [&](const Var& v, std::int64_t from, std::int64_t n) {
            if (v.is_constant() || from == n) return v;
            const std::int64_t shape[] = {n - from, units};
            return call<"catena.concat">({v, zeros_like(v, shape)}, {set("axis", 0)});
        };
        const Var x = flat(g.x(0), 4 * units);
        const Var w = g.x(1);
        const Var h = flat(g.y(0), units);
        const Var c = flat(g.y(1), units);
        const Var of_h = flat(g.gy(0), units);
        const Var of_c = flat(g.gy(1), units);
        Var gh(0), gc(0), gw(0);
        std::vector<Var> gx(static_cast<std::size_t>(steps.count()));
        steps.for_each_back([&](const Steps::Step& s) {
            const Var h_prev = s.is_first() ? g.x(2) : part(h, s.before, s.rows);
            const Var c_prev = s.is_first() ? g.x(3) : part(c, s.before, s.rows);
            Var gates = part(x, s.first, s.rows);
            if (!h_prev.is_constant()) gates = gates + matmul(h_prev, w, false, true);
            const std::int64_t cells[] = {s.rows, units};
            const std::int64_t all_gates[] = {s.rows, 4 * units};
            const LstmGradients step = lstm_gradients(
                LstmLayout(cells, all_gates), c_prev, gates, part(c, s.first, s.rows),
                part(of_c, s.first, s.rows) + padded(gc, s.after, s.rows),
                part(of_h, s.first, s.rows) + padded(gh, s.after, s.rows));
            gx[static_cast<std::size_t>(s.index)] = step.x;
            gc = step.c_prev;
            gh = matmul(step.x, w);
            if (!h_prev.is_constant() && g.wants(1)) gw = gw + matmul(step.x, h_prev, true, false);
        });
        if (g.wants(0) && !gx.empty()) g.gx(0, reshape(joined(gx), g.x_shape(0)));
        if (g.wants(1)) g.gx(1, gw);
        if (g.wants(2)) g.gx(2, gh);
        if (g.wants(3)) g.gx(3, gc);
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
        plan.scratch_bytes = forward ? Outputs<T>(call).bytes : Gradients<T>(call).bytes;
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        run_forward<T>(call, OnCpu(call));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        run_backward<T>(call, OnCpu(call));
    }

    // The same on every device.
    template <class T>
    CATENA_KERNEL static void run_forward(const auto& call, const auto& device) {
        const Steps steps = steps_of(call, call.template x<T>(0).shape);
        const auto w = call.template x<T>(1);
        const std::int64_t units = w.dim(1);
        const Outputs<T> to(call);
        steps.for_each([&](const Steps::Step& s) CATENA_LAMBDA {
            const std::int64_t at = s.first * units, before = s.before * units;
            const T* const h_prev = s.is_first() ? call.template x<T>(2).data : to.h + before;
            if (h_prev != nullptr)
                gemm<T>(call.context(), call.raw(),
                        product(false, true, s.rows, 4 * units, units, h_prev, w.data,
                                to.gates + 4 * at, false));
            device.run(LstmStep<T>{
                .rows = s.rows,
                .units = units,
                .x = call.template x<T>(0).data + 4 * at,
                .from_state = h_prev != nullptr ? to.gates + 4 * at : nullptr,
                .c_prev = s.is_first() ? call.template x<T>(3).data : to.c + before,
                .gates = to.gates + 4 * at,
                .c = to.c + at,
                .h = to.h + at,
            });
        });
        for (std::size_t i = 0; i < 3; ++i)
            to.finish(device, i, call.template y<T>(i), call.adds(i));
    }
    template <class T>
    CATENA_KERNEL static void run_backward(const auto& call, const auto& device) {
        const Steps steps = steps_of(call, call.template x<T>(0).shape);
        const auto w = call.template x<T>(1);
        const auto h0 = call.template x<T>(2);
        const T* const h = call.template y<T>(0).data;
        const T* const c = call.template y<T>(1).data;
        const T* const gh = call.template gy<T>(0).data;
        const T* const gc = call.template gy<T>(1).data;
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(1);
        const auto gh0 = call.template gx<T>(2);
        const auto gc0 = call.template gx<T>(3);
        const std::int64_t units = w.dim(1);
        const Gradients<T> to(call);
        steps.for_each_back([&](const Steps::Step& s) CATENA_LAMBDA {
            const std::int64_t at = s.first * units, before = s.before * units;
            T* const of_gates = to.of_gates + 4 * at;
            device.run(LstmStepGradient<T>{
                .rows = s.rows,
                .units = units,
                .rows_after = s.after,
                .gates = call.template y<T>(2).data + 4 * at,
                .c = c + at,
                .c_prev = s.is_first() ? call.template x<T>(3).data : c + before,
                .gh = gh != nullptr ? gh + at : nullptr,
                .gc = gc != nullptr ? gc + at : nullptr,
                .gh_after = to.gh,
                .gc_after = to.gc,
                .gprev = s.is_first() ? gc0.data : to.gc,
                .add_prev = s.is_first() && call.adds(3),
                .of_gates = of_gates,
            });
            T* const gh_prev = s.is_first() ? gh0.data : to.gh;
            if (gh_prev != nullptr)
                gemm<T>(call.context(), call.raw(),
                        product(false, false, s.rows, units, 4 * units, of_gates, w.data, gh_prev,
                                s.is_first() && call.adds(2)));
        });
        if (steps.count() == 0) {
            if (gh0 && !call.adds(2)) device.zero(gh0.size(), gh0.data);
            if (gc0 && !call.adds(3)) device.zero(gc0.size(), gc0.data);
        }
        if (gw) {
            bool add = call.adds(1);
            const auto add_product = [&](std::int64_t first, const T* from, std::int64_t n) {
                gemm<T>(call.context(), call.raw(),
                        product(true, false, 4 * units, units, n, to.of_gates + first * 4 * units,
                                from, gw.data, add));
                add = true;
            };
            if (h0 && steps.count() > 0) add_product(0, h0.data, steps.most());
            steps.for_each_run([&](std::int64_t first, std::int64_t before, std::int64_t n) {
                add_product(first, h + before * units, n);
            });
            if (!add) device.zero(gw.size(), gw.data);
        }
        if (gx && to.of_gates != gx.data) device.add(gx.size(), to.of_gates, gx.data);
    }

private:
    // Rows one after the other. By twos: a call takes a limited number of inputs.
    static Var joined(std::span<const Var> parts) {
        if (parts.size() == 1) return parts[0];
        const std::size_t half = parts.size() / 2;
        return call<"catena.concat">({joined(parts.first(half)), joined(parts.subspan(half))},
                                     {set("axis", 0)});
    }
    static Steps steps_of(const auto& call, Shape x) {
        return Steps(x, call.template attr<"rows">());
    }

    // Pieces of the scratch memory, one after the other; of none yet, in plan(), their sizes.
    template <class T>
    class Scratch {
    public:
        explicit Scratch(const auto& call) : data_(call.template scratch<T>()) {}
        T* take(std::int64_t n) {
            const std::int64_t at = std::exchange(taken_, taken_ + n);
            return data_ == nullptr ? nullptr : data_ + at;
        }
        std::uint64_t bytes() const { return static_cast<std::uint64_t>(taken_) * sizeof(T); }

    private:
        T* data_;
        std::int64_t taken_ = 0;
    };
    // Where outputs are computed: in place, but for those that are added to.
    template <class T>
    struct Outputs {
        explicit Outputs(const auto& call) {
            Scratch<T> scratch(call);
            T** const parts[] = {&h, &c, &gates};
            for (std::size_t i = 3; i-- > 0;) {  // gates first: they are read in groups of four
                const auto y = call.template y<T>(i);
                *parts[i] = call.adds(i) ? scratch.take(y.size()) : y.data;
            }
            bytes = scratch.bytes();
        }
        CATENA_KERNEL void finish(const auto& device, std::size_t i, Tensor<T> y, bool add) const {
            const T* const from[] = {h, c, gates};
            if (add) device.add(y.size(), from[i], y.data);
        }
        T *h, *c, *gates;
        std::uint64_t bytes;
    };
    // Where gradients are kept: those of the gates, and of the state that a step hands on.
    template <class T>
    struct Gradients {
        explicit Gradients(const auto& call) {
            const auto x = call.template x<T>(0);
            const std::int64_t state =
                steps_of(call, x.shape).most() * call.template x<T>(1).dim(1);
            Scratch<T> scratch(call);
            of_gates = call.wants(0) && !call.adds(0) ? call.template gx<T>(0).data
                                                      : scratch.take(x.size());
            gh = scratch.take(state);
            gc = scratch.take(state);
            bytes = scratch.bytes();
        }
        T *of_gates, *gh, *gc;
        std::uint64_t bytes;
    };

    template <class T>
    static Product<T> product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
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

    template <class Call>
    class OnCpu {
    public:
        explicit OnCpu(const Call& call) : call_(call) {}

        template <class T>
        CATENA_KERNEL void run(const LstmStep<T>& s) const {
            for_each_run<T>(s.rows, s.units, [&](std::int64_t p, std::int64_t n) CATENA_LAMBDA {
                LstmRun<T> gates;
                LstmRun<T> more;
                T prev[LstmRun<T>::most];
                gates.load(s.x + 4 * p, 1, n);
                if (s.from_state != nullptr) {
                    more.load(s.from_state + 4 * p, 1, n);
                    CATENA_LOOP
                    for (std::int64_t k = 0; k < n; ++k) {
                        const LstmGates<T> v = gates[k], w = more[k];
                        gates.set(k, {v.a + w.a, v.i + w.i, v.f + w.f, v.o + w.o});
                    }
                }
                LstmRun<T>::get(prev, s.c_prev == nullptr ? nullptr : s.c_prev + p, n);
                T* const c = s.c + p;
                T* const h = s.h + p;
                CATENA_LOOP
                for (std::int64_t k = 0; k < n; ++k) {
                    const LstmGates<T> v = gates[k].activated();
                    const T cell = v.cell(prev[k]);
                    gates.set(k, v);
                    c[k] = cell;
                    h[k] = v.hidden(math::tanh(cell));
                }
                gates.store(s.gates + 4 * p, 1, n, false);
            });
        }
        template <class T>
        CATENA_KERNEL void run(const LstmStepGradient<T>& s) const {
            const std::int64_t cells_after = s.rows_after * s.units;
            for_each_run<T>(s.rows, s.units, [&](std::int64_t p, std::int64_t n) CATENA_LAMBDA {
                const bool handed = p < cells_after;  // whole rows are, and a run is within one
                LstmRun<T> gates;
                T prev[LstmRun<T>::most];
                T gh[LstmRun<T>::most], gh_after[LstmRun<T>::most];
                T gc[LstmRun<T>::most], gc_after[LstmRun<T>::most];
                gates.load(s.gates + 4 * p, 1, n);
                LstmRun<T>::get(prev, s.c_prev == nullptr ? nullptr : s.c_prev + p, n);
                LstmRun<T>::get(gh, s.gh == nullptr ? nullptr : s.gh + p, n);
                LstmRun<T>::get(gc, s.gc == nullptr ? nullptr : s.gc + p, n);
                LstmRun<T>::get(gh_after, handed ? s.gh_after + p : nullptr, n);
                LstmRun<T>::get(gc_after, handed ? s.gc_after + p : nullptr, n);
                const T* const c = s.c + p;
                CATENA_LOOP
                for (std::int64_t k = 0; k < n; ++k) {
                    const LstmGates<T> v = gates[k];
                    const T t = math::tanh(c[k]);
                    const T of_h = gh[k] + gh_after[k];
                    const T g = v.of_cell(gc[k] + gc_after[k], of_h, t);
                    gates.set(k, v.gradient(g, of_h, t, prev[k]));
                    gc[k] = g * v.f;
                }
                gates.store(s.of_gates + 4 * p, 1, n, false);
                if (s.gprev != nullptr) LstmRun<T>::put(s.gprev + p, gc, n, s.add_prev);
            });
        }
        template <class T>
        CATENA_KERNEL void add(std::int64_t n, const T* from, T* to) const {
            call_.parallel(n, 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                LstmRun<T>::put(to + begin, from + begin, end - begin, true);
            });
        }
        template <class T>
        CATENA_KERNEL void zero(std::int64_t n, T* to) const {
            std::fill_n(to, n, T(0));
        }

    private:
        // Parts of rows: body(p, n) for n cells from p on.
        template <class T, class Body>
        CATENA_KERNEL void for_each_run(std::int64_t rows, std::int64_t units,
                                        const Body& body) const {
            constexpr std::int64_t most = LstmRun<T>::most;
            const std::int64_t pieces = (units + most - 1) / most;
            call_.parallel(rows * pieces, 16 * std::min(units, most),
                           [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                               for (std::int64_t u = begin; u < end; ++u) {
                                   const std::int64_t first = u % pieces * most;
                                   body(u / pieces * units + first, std::min(most, units - first));
                               }
                           });
        }

        const Call& call_;
    };
};

}  // namespace catena::plugins
