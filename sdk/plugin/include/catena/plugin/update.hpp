// Updates of parameters: formulas without outputs that change some of their inputs in place.
//
//     template <class T> CATENA_FN static void update(T& mutated, T x, ..., T attribute...);
//
// Mutated ports are passed by reference. A function with prepare<T>(double attribute...) receives
// its result, computed once per call, instead of the attributes. `static constexpr auto single_x =
// ports(1);` lists inputs that are a single number () for all elements. The last input may be
// optional: it is passed as a pointer, which is null if it is missing. infer(s) may check more than
// the shapes.
#pragma once

#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

template <class F>
concept Update = requires {
    F::template update<float>;  // without &, which nvcc rejects here
};

// Sets of ports: those that change, and those with a single number for all elements.
template <class F>
constexpr std::uint64_t mutated_ports() {
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < n_inputs<F>; ++i)
        set |= std::uint64_t{(F::about.inputs[i].flags & CATENA_PORT_MUTATED) != 0} << i;
    return set;
}
template <class F>
constexpr std::uint64_t single_ports() {
    if constexpr (requires { F::single_x; }) return F::single_x;
    else return 0;
}

// Returns a formula's arguments after the ports: the result of prepare(), or the attributes.
template <class F, class T>
auto constants_of(const catena_value* attrs) {
    if constexpr (requires { F::template prepare<T>; }) {
        const auto values = formula_attributes<F, double>(attrs);
        return [&]<std::size_t... A>(std::index_sequence<A...>) {
            return F::template prepare<T>(values[A]...);
        }
        (std::make_index_sequence<n_attributes<F>>());
    } else {
        return formula_attributes<F, T>(attrs);
    }
}
template <class F, class T>
using update_constants = decltype(constants_of<F, T>(nullptr));

// Calls body with the indices of the inputs: of all, or of all but an optional last one that is
// missing.
template <class F, class Body>
void with_inputs(const catena_call& call, const Body& body) {
    constexpr std::size_t n = n_inputs<F>;
    if constexpr ((F::about.inputs[n - 1].flags & CATENA_PORT_OPTIONAL) != 0)
        if (call.n_x < n || call.x[n - 1] == nullptr)
            return body(std::make_index_sequence<n - 1>());
    body(std::make_index_sequence<n>());
}

namespace detail {

// The argument of the formula for input i, of which `given` are there.
template <class F, std::size_t i, std::size_t given, class T>
CATENA_FN decltype(auto) update_argument(T* v) {
    if constexpr ((F::about.inputs[i].flags & CATENA_PORT_OPTIONAL) == 0) return (v[i]);
    else return i < given ? v + i : static_cast<T*>(nullptr);
}
template <class F, class T, std::size_t given, std::size_t... X, std::size_t... A>
CATENA_FN void update_element(T* v, const update_constants<F, T>& constants,
                              std::index_sequence<X...>, std::index_sequence<A...>) {
    if constexpr (requires { F::template prepare<T>; })
        F::template update<T>(update_argument<F, X, given>(v)..., constants);
    else F::template update<T>(update_argument<F, X, given>(v)..., constants.data()[A]...);
}
// Updates one element of each of the ports X.
template <class F, class T, std::size_t... X>
CATENA_FN void update_element(T* v, const update_constants<F, T>& constants,
                              std::index_sequence<X...>) {
    update_element<F, T, sizeof...(X)>(v, constants, std::make_index_sequence<n_inputs<F>>(),
                                       std::make_index_sequence<n_attributes<F>>());
}

template <class F, class T, Isa isa, std::size_t... X>
void update(catena_ctx* ctx, const catena_call* call, std::index_sequence<X...>) {
    constexpr std::uint64_t mutated = mutated_ports<F>(), single = single_ports<F>();
    const auto constants = constants_of<F, T>(call->attrs);
    T* const p[] = {data_of<T>(*call->x[X])...};
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        T* const q[] = {p[X]...};
        const auto c = constants;
        CATENA_LOOP
        for (std::int64_t i = begin; i < end; ++i) {
            T v[] = {q[X][(single >> X & 1) != 0 ? 0 : i]...};
            update_element<F, T>(v, c, std::index_sequence<X...>());
            (((mutated >> X & 1) != 0 ? void(q[X][i] = v[X]) : void()), ...);
        }
    };
    parallel<isa>(ctx, size_of(*call->x[0]), 1, body);
}

}  // namespace detail

template <class F, class T, Isa isa>
catena_status CATENA_CALL run_update(catena_ctx* ctx, const catena_call* call) noexcept {
    return guarded(ctx, [&] {
        with_inputs<F>(*call, [&](auto x) { detail::update<F, T, isa>(ctx, call, x); });
    });
}

// All inputs have the shape of the first, except single ones.
template <class F>
void check_update_shapes(const catena_meta* const* x, std::uint32_t n_x) {
    for (std::size_t i = 1; i < n_x; ++i) {
        if (x[i] == nullptr) continue;
        const Shape wanted = (single_ports<F>() >> i & 1) != 0 ? Shape() : shape_of(*x[0]);
        if (!std::ranges::equal(wanted, shape_of(*x[i])))
            detail::fail_shape(F::about.name, F::about.inputs[i], wanted, shape_of(*x[i]));
    }
}

}  // namespace catena::plugin
