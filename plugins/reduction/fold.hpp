// Reductions over any axes by the states of states.hpp: the kernel of all functions of this family,
// and that of their gradients.
#pragma once

#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/reduce.hpp>

#include "states.hpp"

namespace catena::plugins {

inline constexpr Attribute axis_attr =
    attr("axis", Ints{}, "the axes, negative ones from the last; empty: all");
inline constexpr Attribute keepdims_attr = attr("keepdims", false, "keep these axes with extent 1");

// A reduction of x, with more attributes.
constexpr auto reduction(const char* name, const char* doc, const auto& outputs,
                         const auto&... more) {
    return describe(name, doc, in("x"), outputs, axis_attr, keepdims_attr, more...)
        .example("x=(2,3)")
        .example("x=(2,3,4) axis=1")
        .example("x=(2,3,4) axis=[0,-1] keepdims=true")
        .example("x=()");
}

// The types in which elements of T are compared or added, and multiplied: on the CPU double for
// floats. Products of integers are modulo 2^64.
#if defined(CATENA_CUDA)
template <class T>
using Computed = cuda::Compute<T>;
template <class T>
using Factor = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Computed<T>>;
#else
template <class T>
using Computed = T;
template <class T>
using Factor = Total<T>;
#endif

// The numbers of w states.
template <class S, std::int64_t w>
struct Lanes {
    CATENA_FN S get(std::int64_t j) const {
        S s;
        s.first = first[j];
        s.second = second[j];
        return s;
    }
    CATENA_FN void set(std::int64_t j, const S& s) {
        first[j] = s.first;
        second[j] = s.second;
    }
    // Joins the states j and k, of n elements each.
    CATENA_FN void merge(std::int64_t j, std::int64_t k, std::int64_t n) {
        S s = get(j);
        s.merge(get(k), static_cast<typename S::Number>(n));
        set(j, s);
    }
    decltype(S::first) first[w];
    decltype(S::second) second[w];
};

// Adds n contiguous elements, of which the first is element `from`, to a total: in pieces of 64
// elements for each of w lanes, without branches, which would depend on the elements.
template <class S, class T>
CATENA_KERNEL void fold_run(const T* p, std::int64_t n, std::int64_t from,
                            typename S::Total& total) {
    using Total = typename S::Total;
    using C = typename S::Number;
    constexpr std::int64_t w = 256 / sizeof(C);
    constexpr std::int64_t line = 64 / sizeof(T);  // of a cache
    constexpr std::int64_t ahead = 32 * line;
    while (n > 0) {
        const std::int64_t groups = std::min<std::int64_t>(n / w, 64);
        const std::int64_t rest = groups == 64 ? 0 : n - groups * w;
        const bool apart = S::even || rest < 16;  // the rest has a state of its own
        if (groups > 0 || !apart) {
            Lanes<S, w> lanes;
            for (std::int64_t j = 0; j < w; ++j) lanes.set(j, S::start());
            for (std::int64_t g = 0; g < groups; ++g) {
                const C inverse = C(1) / static_cast<C>(g + 1);
                // The processor's own prefetching ends with a page.
                for (std::int64_t j = 0; j < w; j += line)
                    __builtin_prefetch(p + g * w + j + ahead);
                for (std::int64_t j = 0; j < w; ++j) {
                    S s = lanes.get(j);
                    s.take(static_cast<C>(p[g * w + j]), static_cast<Place<C>>(g * w + j), inverse);
                    lanes.set(j, s);
                }
            }
            if (!apart) {
                T last[w] = {};
                std::copy_n(p + groups * w, rest, last);
                for (std::int64_t j = 0; j < w; ++j) {
                    S s = lanes.get(j);
                    s.take(static_cast<C>(last[j]), static_cast<Place<C>>(groups * w + j), C(1));
                    lanes.set(j, j < rest ? s : lanes.get(j));
                }
            }
            std::int64_t each = groups;
            for (std::int64_t half = w / 2; half > 0; half /= 2, each *= 2) {
                const std::int64_t some = std::max<std::int64_t>(half, 8);  // a vector at least
                CATENA_LOOP
                for (std::int64_t j = 0; j < some; ++j) lanes.merge(j, j + half, each);
            }
            total.join(Total::of(lanes.get(0), each, from));
        }
        if (apart && rest > 0) {
            S s = S::start();
            for (std::int64_t j = 0; j < rest; ++j)
                s.take(static_cast<C>(p[groups * w + j]), static_cast<Place<C>>(j),
                       S::even ? C(1) / static_cast<C>(j + 1) : C(1));
            total.join(Total::of(s, rest, from + groups * w));
        }
        n -= groups * w + rest;
        p += groups * w + rest;
        from += groups * w + rest;
    }
}

// Adds the elements [from, to) of `width` adjacent kept elements to their totals.
template <class S, std::int64_t most, class T>
CATENA_KERNEL void fold_strip(const Reduction& r, const T* x, std::int64_t kept, std::int64_t width,
                              std::int64_t from, std::int64_t to, typename S::Total* totals) {
    using Total = typename S::Total;
    using C = typename S::Number;
    if (r.inner_reduced()) {
        for (std::int64_t k = 0; k < width; ++k) {
            const T* const base = x + r.offset(kept + k, false);
            for (std::int64_t i = from; i < to;) {
                const std::int64_t run = std::min(to - i, r.inner() - i % r.inner());
                fold_run<S>(base + r.offset(i, true), run, i, totals[k]);
                i += run;
            }
        }
        return;
    }
    const T* const base = x + r.offset(kept, false);
    for (std::int64_t i = from; i < to; i += 64) {
        Lanes<S, most> lanes;
        for (std::int64_t k = 0; k < width; ++k) lanes.set(k, S::start());
        const std::int64_t rows = std::min<std::int64_t>(64, to - i);
        for (std::int64_t j = 0; j < rows; ++j) {
            const T* const row = base + r.offset(i + j, true);
            const C inverse = C(1) / static_cast<C>(j + 1);
            CATENA_LOOP
            for (std::int64_t k = 0; k < width; ++k) {
                S s = lanes.get(k);
                s.take(static_cast<C>(row[k]), static_cast<Place<C>>(j), inverse);
                lanes.set(k, s);
            }
        }
        for (std::int64_t k = 0; k < width; ++k) totals[k].join(Total::of(lanes.get(k), rows, i));
    }
}

// Where a result goes.
template <class T>
struct Into {
    T* y;
    bool add;
};

// Reduces x: finish(total) gives the numbers that are stored in `first` and, if it has a type, in
// `second`. Pieces do not depend on the number of threads.
template <class S, class T, class Finish, class A, class B>
CATENA_KERNEL void fold(const auto& call, Tensor<const T> x, const Kept& shape,
                        const Finish& finish, Into<A> first, Into<B> second) {
    using Total = typename S::Total;
    constexpr std::int64_t most = 2048;  // totals on the stack
    constexpr std::int64_t strip = 256;  // kept elements that are reduced side by side
    const Reduction r(x.shape, [&](std::size_t d) { return shape.reduced(d); });
    const std::int64_t kept = r.n_kept();
    const std::int64_t reduced = r.n_reduced();
    if (kept == 0) return;
    const std::int64_t row = r.inner_reduced() ? kept : r.inner();
    const std::int64_t per_row = (row + strip - 1) / strip;
    const std::int64_t strips = kept / row * per_row;
    // With few strips, the reduced range is split too, into pieces that are joined in order.
    std::int64_t pieces = 1;
    if (strips < 4)
        pieces = std::clamp<std::int64_t>(kept * reduced / serial_work, 1, most / (strips * strip));
    Total part[most];
    const auto put = [&](std::int64_t k, const Total& total) CATENA_LAMBDA {
        const auto result = finish(total);
        store(first.y[k], first.add, static_cast<A>(result.first));
        if constexpr (!std::is_same_v<B, None>)
            store(second.y[k], second.add, static_cast<B>(result.second));
    };
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t piece = i / strips;
            const std::int64_t s = i % strips;
            const std::int64_t start = s / per_row * row + s % per_row * strip;
            const std::int64_t width = std::min(strip, row - s % per_row * strip);
            Total own[strip];
            Total* const totals = pieces == 1 ? own : part + piece * kept + start;
            std::fill_n(totals, width, Total::start());
            fold_strip<S, strip>(r, x.data, start, width, reduced * piece / pieces,
                                 reduced * (piece + 1) / pieces, totals);
            if (pieces > 1) continue;
            for (std::int64_t k = 0; k < width; ++k) put(start + k, totals[k]);
        }
    };
    const std::int64_t units = pieces * strips;
    call.parallel(units, std::max<std::int64_t>(1, kept * reduced / units), body);
    if (pieces == 1) return;
    for (std::int64_t k = 0; k < kept; ++k) {
        Total total = part[k];
        for (std::int64_t piece = 1; piece < pieces; ++piece) total.join(part[piece * kept + k]);
        put(k, total);
    }
}

// gx = rule(x, gy, p, q), with gy, p and q of the kept shape; or adds it. q may be null.
template <class T, class P, class Q, class Rule>
CATENA_KERNEL void spread(const auto& call, Tensor<const T> x, const Kept& kept, const T* gy,
                          const P* p, const Q* q, const Rule& rule, T* gx, bool add) {
    const Broadcast walk(kept.shape(), x.shape);
    call.parallel(x.size(), 4, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        constexpr std::int64_t block = 512;
        T g[block];
        P u[block];
        Q v[block] = {};
        for (std::int64_t b = begin; b < end; b += block) {
            const std::int64_t n = std::min(block, end - b);
            walk.load(gy, b, n, g);
            walk.load(p, b, n, u);
            if (q != nullptr) walk.load(q, b, n, v);
            const T* const from = x.data + b;
            T* const to = gx + b;
            CATENA_LOOP
            for (std::int64_t i = 0; i < n; ++i)
                to[i] = (add ? to[i] : T(0)) + rule(from[i], g[i], u[i], v[i]);
        }
    });
}

}  // namespace catena::plugins
