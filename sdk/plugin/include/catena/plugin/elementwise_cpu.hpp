// Elementwise functions on the CPU: a formula's loops for each dtype and instruction set. A driver,
// compiled once per dtype, threads them, broadcasts inputs, adds to outputs and sums gradients.
#pragma once

#include <array>

#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Computes out[k][0 .. n) from in[k][0 .. n), all contiguous.
template <class T>
using Loop = void (*)(std::int64_t n, T* const* out, const T* const* in, const T* attrs);

namespace detail {

template <class F, class T>
struct ForwardLoop {
    CATENA_KERNEL static void run(std::int64_t n, T* const* out, const T* const* in,
                                  const T* attrs) {
        loop(n, out[0], in, attrs, std::make_index_sequence<n_inputs<F>>(),
             std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    CATENA_KERNEL static void loop(std::int64_t n, T* y, const T* const* in, const T* attrs,
                                   std::index_sequence<X...>, std::index_sequence<A...>) {
        const T* const x[] = {in[X]...};
        const T a[] = {attrs[A]..., T()};
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) y[i] = F::template forward<T>(x[X][i]..., a[A]...);
        (void)a;
    }
};

// `in` is gy, every x, and y. Only the gradients in the mask are computed.
template <class F, class T, std::uint64_t mask>
struct BackwardLoop {
    CATENA_KERNEL static void run(std::int64_t n, T* const* out, const T* const* in,
                                  const T* attrs) {
        loop(n, out, in, attrs, std::make_index_sequence<n_inputs<F>>(),
             std::make_index_sequence<n_attributes<F>>());
    }
    template <std::size_t... X, std::size_t... A>
    CATENA_KERNEL static void loop(std::int64_t n, T* const* out, const T* const* in,
                                   const T* attrs, std::index_sequence<X...> xs,
                                   std::index_sequence<A...> as) {
        constexpr Retained retained = retained_by_formula<F>();
        constexpr std::size_t n_x = sizeof...(X);
        T* const gx[] = {out[X]...};
        const T* const p[] = {in[0], in[1 + X]..., in[1 + n_x]};
        const T a[] = {attrs[A]..., T()};
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) {
            const T x[] = {((retained.x >> X & 1) != 0 ? p[1 + X][i] : T())...};
            const T y = retained.y != 0 ? p[1 + n_x][i] : T();
            const auto g = gradient_of<F, T>(p[0][i], x, y, a, xs, as);
            (((mask >> X & 1) != 0 ? void(gx[X][i] = g.values[X]) : void()), ...);
        }
    }
};

template <class K, class T, Isa isa>
constexpr Loop<T> loop_of() {
    return &Target<isa>::template call<K, std::int64_t, T* const*, const T* const*, const T*>;
}

// The cost of one element, in additions: F::work if the function defines it.
template <class F>
constexpr std::int64_t work_of() {
    if constexpr (requires { F::work; }) return F::work;
    else return 1;
}

// A phase of an elementwise function for one instruction set.
template <class T>
struct ElementwiseLoops {
    Loop<T> all;          // forward, or the gradients of all inputs
    const Loop<T>* each;  // the gradient of one input alone, for each input; null: use `all`
    std::int64_t work;
    Retained retained;
    Isa isa;
    bool mixed;  // some ports may be bool, and T is another type
};
template <class T>
catena_status run_forward(catena_ctx* ctx, const catena_call& call,
                          const ElementwiseLoops<T>& loops, const T* attrs) noexcept;
template <class T>
catena_status run_backward(catena_ctx* ctx, const catena_call& call,
                           const ElementwiseLoops<T>& loops, const T* attrs) noexcept;
// Gradients of broadcast inputs are computed in full size in scratch memory, then summed.
template <class T>
catena_status CATENA_CALL plan_backward(catena_ctx*, const catena_call* call,
                                        catena_plan* plan) noexcept;

template <class F, class T, Isa isa, bool mixed>
inline constexpr ElementwiseLoops<T> forward_loops = {
    loop_of<ForwardLoop<F, T>, T, isa>(), nullptr, work_of<F>(), {}, isa, mixed};

// Loops for single gradients add size, so they exist only for fast instruction sets and few inputs.
template <class F, Isa isa>
inline constexpr bool loop_for_each = n_inputs<F> > 1 && n_inputs<F> <= 3 && isa != Isa::baseline;
template <class F, class T, Isa isa>
constexpr auto loops_for_each() {
    constexpr std::size_t n = loop_for_each<F, isa> ? n_inputs<F> : 0;
    std::array<Loop<T>, n> loops{};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        ((loops[I] = loop_of<BackwardLoop<F, T, std::uint64_t{1} << I>, T, isa>()), ...);
    }
    (std::make_index_sequence<n>());
    return loops;
}
template <class F, class T, Isa isa>
inline constexpr auto each_loop = loops_for_each<F, T, isa>();
template <class F, class T, Isa isa, bool mixed>
inline constexpr ElementwiseLoops<T> backward_loops = {
    loop_of<BackwardLoop<F, T, ~std::uint64_t{0}>, T, isa>(),
    loop_for_each<F, isa> ? each_loop<F, T, isa>.data() : nullptr,
    work_of<F>(),
    retained_by_formula<F>(),
    isa,
    mixed};

}  // namespace detail

template <class F, class T, Isa isa, bool mixed>
catena_status CATENA_CALL forward_elementwise(catena_ctx* ctx, const catena_call* call) noexcept {
    const auto attrs = formula_attributes<F, T>(call->attrs);
    return detail::run_forward(ctx, *call, detail::forward_loops<F, T, isa, mixed>, attrs.data());
}
template <class F, class T, Isa isa, bool mixed>
catena_status CATENA_CALL backward_elementwise(catena_ctx* ctx, const catena_call* call) noexcept {
    const auto attrs = formula_attributes<F, T>(call->attrs);
    return detail::run_backward(ctx, *call, detail::backward_loops<F, T, isa, mixed>, attrs.data());
}

}  // namespace catena::plugin
