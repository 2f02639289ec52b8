// Updates of parameters: elementwise functions without outputs that change some of their inputs in
// place, given as a formula.
//
//     template <class T> CATENA_FN static void update(T& mutated, T x, ..., T attribute...);
//
// Mutated ports are passed by reference. A function with prepare<T>(double attribute...) receives
// its result, computed once per call, instead of the attributes. `static constexpr auto single_x =
// ports(1);` lists inputs that are a single number () for all elements.
#pragma once

#include <tuple>

#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

template <class F>
concept Update = requires {
    F::template update<float>;  // nvcc takes no & here
};

namespace detail {

template <class F>
constexpr bool is_single(std::size_t port) {
    if constexpr (requires { F::single_x; }) return (F::single_x >> port & 1) != 0;
    else return false;
}

template <class F, class T, std::size_t... A>
auto prepared(const catena_value* attrs, std::index_sequence<A...>) {
    const auto values = formula_attributes<F, double>(attrs);
    if constexpr (requires { F::template prepare<T>; })
        return std::tuple(F::template prepare<T>(values[A]...));
    else return std::tuple(static_cast<T>(values[A])...);
}

template <class F, class T, Isa isa, std::size_t... X>
void update(catena_ctx* ctx, const catena_call* call, std::index_sequence<X...>) {
    const auto constants = prepared<F, T>(call->attrs, std::make_index_sequence<n_attributes<F>>());
    T* const p[] = {data_of<T>(*call->x[X])...};
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        T* const q[] = {p[X]...};
        const auto c = constants;
        CATENA_LOOP
        for (std::int64_t i = begin; i < end; ++i) {
            T v[] = {q[X][is_single<F>(X) ? 0 : i]...};
            std::apply(
                [&](const auto&... a) CATENA_LAMBDA { F::template update<T>(v[X]..., a...); }, c);
            (((F::about.inputs[X].flags & CATENA_PORT_MUTATED) != 0 ? void(q[X][i] = v[X])
                                                                    : void()),
             ...);
        }
    };
    parallel<isa>(ctx, size_of(*call->x[0]), 1, body);
}

}  // namespace detail

template <class F, class T, Isa isa>
catena_status CATENA_CALL run_update(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        detail::update<F, T, isa>(ctx, call, std::make_index_sequence<n_inputs<F>>());
    });
}

// All inputs have the shape of the first, except single ones.
template <class F>
catena_status CATENA_CALL infer_update(catena_ctx* ctx, const catena_value*,
                                       const catena_meta* const* x, std::uint32_t,
                                       catena_meta* const*, std::uint32_t) noexcept {
    return guarded(ctx, [&] {
        const Shape first(x[0]->shape, static_cast<std::size_t>(x[0]->ndim));
        for (std::size_t i = 1; i < n_inputs<F>; ++i) {
            const Shape other(x[i]->shape, static_cast<std::size_t>(x[i]->ndim));
            const Shape wanted = detail::is_single<F>(i) ? Shape() : first;
            if (!std::ranges::equal(wanted, other))
                fail(CATENA_E_SHAPE, F::about.name,
                     (std::string(F::about.inputs[i].name) + ".shape").c_str(), wanted, other);
        }
    });
}

}  // namespace catena::plugin
