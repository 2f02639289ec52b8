// Long short-term memory: a layer over whole sequences.
#pragma once

#include <vector>

#include <catena/plugin/blas.hpp>

#include "lstm_cell.hpp"

namespace catena::plugins {

// Steps of a sequence: which rows of a batch belong to each.
// In x (steps, N, ...), each step has N rows; in x (total rows, ...), step t has rows[t] rows.
class Steps {
public:
    struct Step {
        std::int64_t index;
        std::int64_t rows;
        std::int64_t first;   // its first row, counted over all steps
        std::int64_t before;  // first row of the previous step, which has at least as many rows
        std::int64_t after;   // number of rows of the next step, which has at most as many
        bool is_first() const { return index == 0; }
    };

    // If x has no elements, there are no steps, regardless of `rows`.
    Steps(Shape x, Ints rows) : listed_(rows), each_(rows.empty() ? x[1] : 0) {
        if (size_of(x) == 0) return;
        count_ = rows.empty() ? x[0] : static_cast<std::int64_t>(rows.size());
        total_ = rows.empty() ? x[0] * x[1] : x[0];
    }

    std::int64_t count() const { return count_; }
    std::int64_t total() const { return total_; }
    // Rows of the first step, which is the largest.
    std::int64_t most() const { return count_ > 0 ? rows(0) : 0; }
    bool even() const { return most() * count_ == total_; }  // all steps have the same size
    std::int64_t rows(std::int64_t step) const {
        return listed_.empty() ? each_ : listed_[static_cast<std::size_t>(step)];
    }

    template <class Body>
    CATENA_KERNEL void for_each(const Body& body) const {
        std::int64_t first = 0;
        for (std::int64_t t = 0; t < count_; first += rows(t++)) body(step(t, first));
    }
    // Calls body(step) from the last step to the first.
    template <class Body>
    CATENA_KERNEL void for_each_back(const Body& body) const {
        std::int64_t first = total_;
        for (std::int64_t t = count_; t-- > 0;) body(step(t, first -= rows(t)));
    }

private:
    Step step(std::int64_t t, std::int64_t first) const {
        return {.index = t,
                .rows = rows(t),
                .first = first,
                .before = t > 0 ? first - rows(t - 1) : 0,
                .after = t + 1 < count_ ? rows(t + 1) : 0};
    }

    Ints listed_;
    std::int64_t each_;
    std::int64_t count_ = 0;
    std::int64_t total_ = 0;
};

struct LstmSequence {
    static constexpr auto about =
        describe(
            "catena.lstm_sequence",
            "An LSTM layer over whole sequences\n\n"
            "Each step: c = tanh(a) sigmoid(i) + c_prev sigmoid(f), h = tanh(c) sigmoid(o), where "
            "a, i, f and o of unit j are the channels 4 j to 4 j + 3 of x + h_prev W^T; c_prev and "
            "h_prev are from the previous step. x is the projected input of all steps, including "
            "biases, computed by catena.linear. Sequences of different lengths are packed step by "
            "step, with the longest sequence first: `rows` is the number of sequences at each step "
            "(batch_sizes of PyTorch's PackedSequence), and these are the first ones of the "
            "previous step. The final state is the last rows of h and c. Outputs are h, then c; "
            "catena.lstm has c first. (Hochreiter and Schmidhuber, \"Long Short-Term Memory\", "
            "1997; forget "
            "gates of Gers et al., 2000.)",
            in(Port("x", "(steps, N, 4 units), or packed (sum of rows, 4 units)"),
               Port("W", "weights of the state: (4 units, units)"),
               Port("h0", "initial state (N, units); missing: zeros").optional(),
               Port("c0", "initial state (N, units); missing: zeros").optional()),
            out(Port("h", "(steps, N, units), or packed (sum of rows, units)"), Port("c", "as h"),
                Port("gates", "tanh(a), sigmoid(i), sigmoid(f), sigmoid(o): as x").hidden()),
            attr("rows", Ints{},
                 "packed: number of sequences at each step, which must not increase"))
            // Packed: enlarged examples of the other form would have thousands of steps.
            .example("x=(4,4) W=(4,1) h0=(2,1) c0=(2,1) rows=[2,1,1]")
            .example("x=(3,4) W=(4,1) c0=(2,1) rows=[2,1,0]")
            .example("x=(5,8) W=(8,2) h0=(2,2) rows=[2,2,1]")
            .example("x=(4,8) W=(8,2) rows=[2,2]");
    static constexpr auto retain_x = ports(0, 1, 2, 3);
    static constexpr auto retain_y = ports(0, 1, 2);
    static constexpr bool any_device = true;
    static constexpr bool any_half = false;  // products need the dtypes

    static void infer(const auto& s) {
        const Shape x = s.x(0), w = s.x(1);
        check_shapes(s, x, w);
        std::int64_t shape[3];
        std::copy(x.begin(), x.end(), shape);
        shape[x.size() - 1] = w[1];
        s.y(0, Shape(shape, x.size()));
        s.y(1, Shape(shape, x.size()));
        s.y(2, x);
    }
    static void check_shapes(const auto& s, Shape x, Shape w) {
        const Ints rows = s.template attr<"rows">();
        if (x.size() != (rows.empty() ? 3u : 2u)) [[unlikely]]
            s.check(false, "x.ndim", rows.empty() ? "3, or 2 with rows" : "2, for there are rows",
                    x.size());
        s.check_ndim(1, 2);
        if (w[0] != times(4, w[1])) [[unlikely]]
            s.check(false, "W.shape[0]", text_of(times(4, w[1])) + ", 4 times its columns", w[0]);
        if (x.back() != w[0]) [[unlikely]]
            s.check(false, rows.empty() ? "x.shape[2]" : "x.shape[1]",
                    text_of(w[0]) + " as W's rows", x.back());
        std::int64_t left = x[0];
        for (std::size_t t = 0; t < rows.size(); ++t) {
            const std::int64_t most = std::min(left, t > 0 ? rows[t - 1] : left);
            if (rows[t] < 0 || rows[t] > most) [[unlikely]]
                s.check(
                    false, ("rows[" + std::to_string(t) + "]").c_str(),
                    "from 0 to " + std::to_string(most) +
                        (t > 0 && most == rows[t - 1] ? ", as the step before" : ", as x has left"),
                    rows[t], CATENA_E_INVALID);
            left -= rows[t];
        }
        if (!rows.empty() && left != 0) [[unlikely]]
            s.check(false, "rows", "a sum of " + std::to_string(x[0]) + ", x's rows", x[0] - left,
                    CATENA_E_INVALID);
        const std::int64_t state[] = {rows.empty() ? x[1] : rows[0], w[1]};
        s.check_shape(2, state);
        s.check_shape(3, state);
    }

    // In the steps of the kernel.
    static std::array<Var, 3> compose(const auto& g) {
        const Meta x = g.x_meta(0), w_meta = g.x_meta(1);
        check_shapes(g, x.shape(), w_meta.shape());
        const Steps steps = steps_of(g, x.shape());
        const Var w = g.x(1);
        List shape = list_of(x.shape());
        shape.back() = w.dim(1);
        if (steps.count() == 0)
            return {full(shape, 0, x.dtype), full(shape, 0, x.dtype), full(x.shape(), 0, x.dtype)};
        const Var all = reshape(g.x(0), {steps.total(), 4 * w.dim(1)});
        std::vector<Var> hs, cs, gates;
        Var h = g.x(2), c = g.x(3);
        steps.for_each([&](const Steps::Step& s) {
            Var reached = slice(all, 0, s.first, s.first + s.rows);
            if (!h.is_missing()) reached = reached + matmul(slice(h, 0, 0, s.rows), w, false, true);
            const LstmGates<Var> v = gates_in(reached).activated();
            c = c.is_missing() ? v.a * v.i : v.cell(slice(c, 0, 0, s.rows));
            h = v.hidden(math::tanh(c));
            hs.push_back(h), cs.push_back(c);
            gates.push_back(reshape(stack({v.a, v.i, v.f, v.o}, 2), {s.rows, 4 * w.dim(1)}));
        });
        return {reshape(joined(hs), shape), reshape(joined(cs), shape),
                reshape(joined(gates), x.shape())};
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
        plan.scratch_bytes =
            static_cast<std::uint64_t>(forward ? Outputs<T>(call).bytes : Gradients<T>(call).bytes);
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const Steps steps = steps_of(call, call.template x<T>(0).shape);
        const auto w = call.template x<T>(1);
        const std::int64_t units = w.dim(1);
        const Outputs<T> to(call);
        steps.for_each([&](const Steps::Step& s) CATENA_LAMBDA {
            const std::int64_t at = s.first * units, before = s.before * units;
            const T* const h_prev = s.is_first() ? call.template x<T>(2).data : to.h + before;
            if (h_prev != nullptr)
                multiply<T>(call, {h_prev, s.rows, units}, {w.data, 4 * units, units, true},
                            to.gates + 4 * at, false);
            run_step(call, LstmStep<T>{
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
        for (std::size_t i = 0; i < 3; ++i) to.finish(call, i);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
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
            run_step(call, LstmStepGradient<T>{
                               .rows = s.rows,
                               .units = units,
                               .rows_after = s.after,
                               .gates = call.template y<T>(2).data + 4 * at,
                               .c = c + at,
                               .c_prev = s.is_first() ? call.template x<T>(3).data : c + before,
                               .h_prev = s.is_first() ? h0.data : h + before,
                               .gh = gh != nullptr ? gh + at : nullptr,
                               .gc = gc != nullptr ? gc + at : nullptr,
                               .gh_after = to.gh,
                               .carried = to.gc,
                               .of_gates = of_gates,
                               .kept = to.states != nullptr ? to.states + at : nullptr,
                               .gc0 = s.is_first() ? gc0.data : nullptr,
                               .add_gc0 = call.adds(3) ? 1 : 0,
                           });
            T* const gh_prev = s.is_first() ? gh0.data : to.gh;
            if (gh_prev != nullptr)
                multiply<T>(call, {of_gates, s.rows, 4 * units}, {w.data, 4 * units, units},
                            gh_prev, s.is_first() && call.adds(2));
        });
        if (steps.count() == 0) {
            const T* const zeros = nullptr;
            if (gh0) put_elements(call, zeros, gh0, call.adds(2));
            if (gc0) put_elements(call, zeros, gc0, call.adds(3));
        }
        if (gw) {  // states before each step: in `states`, or in h, one step before the gates
            const std::int64_t first = to.states != nullptr ? 0 : steps.most();
            const std::int64_t rows = steps.total() - first;
            multiply<T>(call, {to.of_gates + first * 4 * units, rows, 4 * units, true},
                        {to.states != nullptr ? to.states : h, rows, units}, gw.data, call.adds(1));
        }
        if (gx && to.of_gates != gx.data) put_elements(call, to.of_gates, gx, true);
    }

private:
    // Concatenates the parts' rows, in pairs because a call has a limited number of inputs.
    static Var joined(std::span<const Var> parts) {
        if (parts.size() == 1) return parts[0];
        const std::size_t half = parts.size() / 2;
        return concat({joined(parts.first(half)), joined(parts.subspan(half))}, 0);
    }
    static Steps steps_of(const auto& call, Shape x) {
        return Steps(x, call.template attr<"rows">());
    }

    // The memory in which outputs are computed: in place, or scratch memory if they are added to.
    template <class T>
    struct Outputs {
        explicit Outputs(const auto& call) {
            Blocks scratch(call.template scratch<char>());
            T** const parts[] = {&h, &c, &gates};
            for (std::size_t i = 0; i < 3; ++i) {
                const auto y = call.template y<T>(i);
                *parts[i] = call.adds(i) ? scratch.take<T>(y.size()) : y.data;
            }
            bytes = scratch.bytes();
        }
        CATENA_KERNEL void finish(const auto& call, std::size_t i) const {
            const T* const from[] = {h, c, gates};
            if (call.adds(i)) put_elements(call, from[i], call.template y<T>(i), true);
        }
        T *h, *c, *gates;
        std::int64_t bytes;
    };
    // The memory of gradients: of the gates, and of the state that a step leaves to the previous
    // one. `states` holds a copy of the states before all steps unless they are contiguous in h.
    template <class T>
    struct Gradients {
        explicit Gradients(const auto& call) {
            const auto x = call.template x<T>(0);
            const Steps steps = steps_of(call, x.shape);
            const std::int64_t units = call.template x<T>(1).dim(1);
            const std::int64_t state = steps.count() > 1 ? steps.most() * units : 0;
            const bool apart = !steps.even() || call.template x<T>(2);
            Blocks scratch(call.template scratch<char>());
            of_gates = call.wants(0) && !call.adds(0) ? call.template gx<T>(0).data
                                                      : scratch.take<T>(x.size());
            gh = scratch.take<T>(state);
            gc = scratch.take<LstmSum<T>>(state);
            states = call.wants(1) && apart ? scratch.take<T>(steps.total() * units) : nullptr;
            bytes = scratch.bytes();
        }
        T *of_gates, *gh;
        LstmSum<T>* gc;
        T* states;
        std::int64_t bytes;
    };
};

CATENA_FUNCTIONS(LstmSequence);

}  // namespace catena::plugins
