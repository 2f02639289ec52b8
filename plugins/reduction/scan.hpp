// Running sums and products along an axis, and the linear recurrence of which their gradients
// consist.
#pragma once

#include <catena/plugin/rows.hpp>

#include <cstring>

#include "fold.hpp"

namespace catena::plugins {

// What a scan stores for each element: its own result, or that of the elements before it.
struct ScanMode {
    bool reverse, exclusive, shifted;
};

struct RunningSum {
    static constexpr bool associative = true;
    template <class A>
    CATENA_FN static A start() {
        return A(0);
    }
    template <class A>
    CATENA_FN static A next(A before, A x, A, bool) {
        return before + x;
    }
    template <class V>
    CATENA_FN static void join(V& to, const V& others) {
        to += others;
    }
    template <class A>
    CATENA_FN static A carried(A result, A, bool) {
        return result;
    }
};
struct RunningProduct : RunningSum {
    template <class V>
    CATENA_FN static void join(V& to, const V& others) {
        to *= others;
    }
    template <class A>
    CATENA_FN static A start() {
        return A(1);
    }
    template <class A>
    CATENA_FN static A next(A before, A x, A, bool) {
        return before * x;
    }
};
// y[i] = a[i] y[i-1] + b[i]. Shifted: y[i] = a[i-1] y[i-1] + b[i].
struct Recurrence : RunningSum {
    static constexpr bool associative = false;
    template <class A>
    CATENA_FN static A next(A before, A a, A b, bool shifted) {
        return (shifted ? before : a * before) + b;
    }
    template <class A>
    CATENA_FN static A carried(A result, A a, bool shifted) {
        return shifted ? a * result : result;
    }
};

// Adds an element to the state of its line, and returns its result.
template <class Rule, class A>
CATENA_KERNEL A scan_one(A& state, A x, A b, ScanMode mode) {
    const A before = state;
    const A result = Rule::next(before, x, b, mode.shifted);
    state = Rule::carried(result, x, mode.shifted);
    return mode.exclusive ? before : result;
}
inline constexpr std::int64_t widest = 512;  // adjacent lines, for long runs of memory

// Scans up to `widest` adjacent lines of n elements, which lie `step` apart.
template <class Rule, class T, class Y>
CATENA_KERNEL void scan_strip(const T* x, const T* b, Y* y, std::int64_t n, std::int64_t step,
                              std::int64_t width, ScanMode mode, bool add) {
    using A = Total<T>;
    A state[widest];
    std::fill_n(state, width, Rule::template start<A>());
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = (mode.reverse ? n - 1 - i : i) * step;
        CATENA_LOOP
        for (std::int64_t j = 0; j < width; ++j) {
            const A result = scan_one<Rule>(state[j], static_cast<A>(x[row + j]),
                                            static_cast<A>(b[row + j]), mode);
            store(y[row + j], add, static_cast<Y>(result));
        }
    }
}
// Scans a contiguous line of n elements: eight at a time, if their order does not matter. In float64,
// parts of a finite result may overflow; then the eight are scanned one by one.
template <class Rule, class T, class Y>
CATENA_KERNEL void scan_line(const T* x, const T* b, Y* y, std::int64_t n, ScanMode mode, bool add,
                             Total<T> state = Rule::template start<Total<T>>()) {
    using A = Total<T>;
    constexpr std::int64_t w = 8;
    std::int64_t i = 0;
    const auto scan_until = [&](std::int64_t end) CATENA_LAMBDA {
        for (; i < end; ++i) {
            const std::int64_t at = mode.reverse ? n - 1 - i : i;
            const A result =
                scan_one<Rule>(state, static_cast<A>(x[at]), static_cast<A>(b[at]), mode);
            store(y[at], add, static_cast<Y>(result));
        }
    };
    if constexpr (Rule::associative) {
        using Eight [[gnu::vector_size(w * sizeof(A))]] = A;
        using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        using Elements [[gnu::vector_size(w * sizeof(T))]] = Stored;
        using Results [[gnu::vector_size(w * sizeof(Y))]] = Y;
        const Eight none = Rule::template start<A>() + Eight{};
        while (i + w <= n) {
            const std::int64_t at = mode.reverse ? n - w - i : i;
            Elements e;
            std::memcpy(&e, x + at, sizeof e);
            Eight v = __builtin_convertvector(e, Eight);
            if (mode.reverse) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
            Rule::join(v, __builtin_shufflevector(none, v, 7, 8, 9, 10, 11, 12, 13, 14));
            Rule::join(v, __builtin_shufflevector(none, v, 6, 7, 8, 9, 10, 11, 12, 13));
            Rule::join(v, __builtin_shufflevector(none, v, 4, 5, 6, 7, 8, 9, 10, 11));
            if constexpr (std::is_same_v<T, double>) {
                const Eight rest = v - v;  // NaN where v is not finite
                A sum = 0;
                for (std::int64_t j = 0; j < w; ++j) sum += rest[j];
                if (sum != 0) {
                    scan_until(i + w);
                    continue;
                }
            }
            const Eight before = state + Eight{};
            Rule::join(state, v[w - 1]);
            Rule::join(v, before);
            if (mode.exclusive) v = __builtin_shufflevector(before, v, 7, 8, 9, 10, 11, 12, 13, 14);
            if (mode.reverse) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
            Results sum = __builtin_convertvector(v, Results);
            if (add) {
                Results old;
                std::memcpy(&old, y + at, sizeof old);
                sum += old;
            }
            std::memcpy(y + at, &sum, sizeof sum);
            i += w;
        }
    }
    scan_until(n);
}
// Sums up a contiguous line in chunks, whose size depends only on n, so that the results do not depend
// on the number of threads. Products are not computed in chunks, because a chunk's product may overflow
// where the running product does not. A chunk's sum may overflow only in float64, or is infinite or NaN as
// its elements are; then the line is scanned from its start.
inline constexpr std::int64_t chunk_size = 1 << 16;
template <class T, class Y>
CATENA_KERNEL void sum_chunks(const auto& call, const T* x, Y* y, std::int64_t n, ScanMode mode,
                              bool add) {
    constexpr std::int64_t most = 256;
    const std::int64_t size = std::max(chunk_size, (n + most - 1) / most);
    const std::int64_t count = (n + size - 1) / size;
    Total<T> before[most + 1] = {};  // the sum of each chunk, then of all chunks before it
    const auto each = [&](auto body) CATENA_LAMBDA {
        call.parallel(count, size, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t c = begin; c < end; ++c) {
                const std::int64_t length = std::min(size, n - c * size);
                body(c, mode.reverse ? n - c * size - length : c * size, length);
            }
        });
    };
    each([&](std::int64_t c, std::int64_t at, std::int64_t length) CATENA_LAMBDA {
        Total<T> lanes[8] = {};
        std::int64_t i = 0;
        for (; i + 8 <= length; i += 8)
            for (std::int64_t j = 0; j < 8; ++j) lanes[j] += static_cast<Total<T>>(x[at + i + j]);
        for (; i < length; ++i) lanes[0] += static_cast<Total<T>>(x[at + i]);
        for (const Total<T> lane : lanes) before[c + 1] += lane;
    });
    for (std::int64_t c = 0; c < count; ++c)
        if (before[c + 1] - before[c + 1] != 0) return scan_line<RunningSum>(x, x, y, n, mode, add);
    for (std::int64_t c = 0; c < count; ++c) before[c + 1] += before[c];
    each([&](std::int64_t c, std::int64_t at, std::int64_t length) CATENA_LAMBDA {
        scan_line<RunningSum>(x + at, x + at, y + at, length, mode, add, before[c]);
    });
}
// Scans all lines of an axis. b is x for rules without a second operand.
template <class Rule, class T, class Y>
CATENA_KERNEL void scan(const auto& call, const Axis& axis, const T* x, const T* b, Y* y,
                        ScanMode mode, bool add) {
    const std::int64_t n = axis.length;
    if (axis.inner != 1)
        return for_each_strip<widest>(
            call, axis, [&](std::int64_t, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                scan_strip<Rule>(x + p, b + p, y + p, n, axis.inner, width, mode, add);
            });
    if constexpr (std::is_same_v<Rule, RunningSum>)
        if (axis.outer < 16 && n >= 2 * chunk_size) {  // a few long lines
            for (std::int64_t o = 0; o < axis.outer; ++o)
                sum_chunks(call, x + o * n, y + o * n, n, mode, add);
            return;
        }
    call.parallel(axis.outer, n + 8, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t o = begin; o < end; ++o)
            scan_line<Rule>(x + o * n, b + o * n, y + o * n, n, mode, add);
    });
}

// cumsum and cumprod.
template <class Rule>
struct Running {
    using types = Totals;
    static constexpr unsigned widened = 0b11;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const catena_dtype y = total_dtype(s.dtype(0));
        const Ints axis = s.template attr<"axis">();
        s.check(axis.size() <= 1, "axis", "at most one axis", axis, CATENA_E_INVALID);
        if (axis.empty()) return s.y(0, {s.size(0)}, y);
        s.axis(axis[0], s.x(0).size());
        s.y(0, s.x(0), y);
    }
    template <class T, class Y>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<Y>(0);
        scan<Rule>(call, Axis(y.shape, axis_of(call, y.ndim())), x.data, x.data, y.data,
                   mode_of(call), call.adds(0));
    }

protected:
    static std::size_t axis_of(const auto& call, std::size_t ndim) {
        const Ints axis = call.template attr<"axis">();
        return axis.empty() ? 0 : axis_index(axis[0], ndim);
    }
    static ScanMode mode_of(const auto& call) {
        return {call.template attr<"reverse">(), call.template attr<"exclusive">(), false};
    }
};

constexpr auto running(const char* name, const char* doc) {
    return describe(
               name, doc, in("x"), out(Port("y").of("U")),
               attr("axis", Ints{}, "one axis, negative: from the last; empty: x is flattened"),
               attr("exclusive", false, "an element is not part of its own result"),
               attr("reverse", false, "start at the end"))
        .since(2)
        // Integers are 4 x, rounded: -1, 0 or 1, whose products do not overflow.
        .example("x=(2,3)[-0.37,0.37]")
        .example("x=(2,3)[-0.37,0.37] axis=1")
        .example("x=(2,3,2)[-0.37,0.37] axis=1 reverse=true")
        .example("x=(2,3)[-0.37,0.37] axis=-1 exclusive=true")
        .example("x=(2,3)[-0.37,0.37] axis=0 exclusive=true reverse=true");
}

struct Cumsum : Running<RunningSum> {
    static constexpr auto about =
        running("catena.cumsum",
                "y = running sum of x along an axis, summed in float64\n\n"
                "Sums of integers and bool are int64, as in NumPy.");
    static void gradient(const auto& g) {
        const std::int64_t axis = static_cast<std::int64_t>(axis_of(g, g.x_shape(0).size()));
        const Var gx =
            call<"catena.cumsum">({g.gy(0)}, {set("axis", Ints(&axis, 1)), g.same("exclusive"),
                                              set("reverse", !g.template attr<"reverse">())});
        g.gx(0, reshape(gx, g.x_shape(0)));
    }
};

// A recurrence of a gradient.
inline Var recurrence(const Var& a, const Var& b, std::size_t axis, const ScanMode& mode) {
    return call<"catena.linear_recurrence">(
        {a, b}, {set("axis", static_cast<std::int64_t>(axis)), set("reverse", mode.reverse),
                 set("exclusive", mode.exclusive), set("shifted", mode.shifted)});
}

struct Cumprod : Running<RunningProduct> {
    static constexpr auto about =
        running("catena.cumprod",
                "y = running product of x along an axis\n\n"
                "Gradients of any order are right for elements that are 0, too. Products of "
                "integers and bool are int64, as in NumPy.");
    static constexpr auto retain_x = ports(0);

    // gx[i] is the product before i, times the sum over k >= i of gy[k] and the product from i + 1
    // to k, which is a recurrence from the end.
    static void gradient(const auto& g) {
        const ScanMode mode = mode_of(g);
        const std::size_t axis = axis_of(g, g.x_shape(0).size());
        const std::int64_t along = static_cast<std::int64_t>(axis);
        const Var x = reshape(g.x(0), shape_of(g.gy(0).meta()));
        const Var before = call<"catena.cumprod">(
            {x}, {set("axis", Ints(&along, 1)), set("exclusive", true), g.same("reverse")});
        const Var after =
            recurrence(x, g.gy(0), axis, {!mode.reverse, mode.exclusive, !mode.exclusive});
        g.gx(0, reshape(before * after, g.x_shape(0)));
    }
};

struct LinearRecurrence {
    static constexpr auto about =
        describe("catena.linear_recurrence",
                 "y[i] = a[i] y[i-1] + b[i] along an axis, from 0\n\n"
                 "For gradients of catena.cumprod.",
                 in("a", "b"), out("y"), required<std::int64_t>("axis", "the axis"),
                 attr("reverse", false, "i + 1 instead of i - 1"),
                 attr("exclusive", false, "the result is y[i-1] instead of y[i]"),
                 attr("shifted", false, "a[i-1] instead of a[i]; not with exclusive"))
            .internal()
            .example("a=(2,3) b=(2,3) axis=1")
            .example("a=(2,3,2) b=(2,3,2) axis=1 reverse=true")
            .example("a=(2,3) b=(2,3) axis=1 exclusive=true")
            .example("a=(3,2) b=(3,2) axis=0 exclusive=true reverse=true")
            .example("a=(2,3) b=(2,3) axis=1 shifted=true")
            .example("a=(3,2) b=(3,2) axis=0 shifted=true reverse=true");
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(0);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        s.check_shape(1, s.x(0));
        s.axis(s.template attr<"axis">(), s.x(0).size());
        s.check(!(s.template attr<"exclusive">() && s.template attr<"shifted">()), "shifted",
                "false if exclusive", true, CATENA_E_INVALID);
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        const ScanMode mode = mode_of(g);
        const std::size_t axis = axis_index(g.template attr<"axis">(), g.x_shape(0).size());
        const Var a = g.x(0);
        const Var gy = g.gy(0);
        const bool back = !mode.reverse;
        if (mode.shifted) {
            if (g.wants(0)) g.gx(0, g.y(0) * recurrence(a, gy, axis, {back, true, false}));
            if (g.wants(1)) g.gx(1, recurrence(a, gy, axis, {back, false, false}));
            return;
        }
        const Var gb = recurrence(a, gy, axis, {back, mode.exclusive, !mode.exclusive});
        if (g.wants(1)) g.gx(1, gb);
        if (!g.wants(0)) return;
        g.gx(0, gb * (mode.exclusive ? g.y(0)
                                     : recurrence(a, g.x(1), axis, {mode.reverse, true, false})));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        scan<Recurrence>(call, Axis(a.shape, axis_index(call.template attr<"axis">(), a.ndim())),
                         a.data, call.template x<T>(1).data, call.template y<T>(0).data,
                         mode_of(call), call.adds(0));
    }

private:
    static ScanMode mode_of(const auto& call) {
        return {call.template attr<"reverse">(), call.template attr<"exclusive">(),
                call.template attr<"shifted">()};
    }
};

CATENA_FUNCTIONS(Cumsum, Cumprod, LinearRecurrence);

}  // namespace catena::plugins
