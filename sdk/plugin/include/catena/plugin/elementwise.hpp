// Elementwise functions: what the SDK derives from their formulas, and NumPy broadcasting.
//
//   template <class T> CATENA_FN static T forward(T x..., T attribute...);
//   template <class T> CATENA_FN static Grads<T, n> backward(T gy, T x..., [T y,] T attribute...);
//
// Attributes are numbers and come last. Values of x and y that backward does not use are not kept.
//
// A port with a type variable of its own may be bool: Row<bool, float> is a row of a bool condition
// and floats, Row<float, bool> one of a comparison. Formulas get the bool elements as 1 and 0, in
// the type of the others. They return 1 and 0, or another number that is not 0.
#pragma once

#include <utility>

#include "catena/plugin/describe.hpp"
#include "catena/plugin/error.hpp"
#include "catena/plugin/math.hpp"
#include "catena/plugin/probe.hpp"

namespace catena::plugin {

// The gradients of n inputs, one element of each.
template <class T, std::size_t n>
struct Grads {
    T values[n];
};

template <class F>
inline constexpr std::size_t n_inputs = F::about.inputs.size();
template <class F>
inline constexpr std::size_t n_outputs = F::about.outputs.size();
template <class F>
inline constexpr std::size_t n_attributes = F::about.attrs.size();

namespace detail {

template <class T, std::size_t>
using Repeat = T;
template <class F, class T, std::size_t... I>
auto forward_result(std::index_sequence<I...>)
    -> decltype(F::template forward<T>(std::declval<Repeat<T, I>>()...));
template <class F, class T, std::size_t... I>
auto backward_result(std::index_sequence<I...>)
    -> decltype(F::template backward<T>(std::declval<Repeat<T, I>>()...));

template <class F, std::size_t n>
concept ForwardTakes = requires {
    { forward_result<F, float>(std::make_index_sequence<n>()) } -> std::same_as<float>;
};
template <class F, std::size_t n>
concept BackwardTakes = requires {
    requires !std::is_void_v<decltype(backward_result<F, float>(std::make_index_sequence<n>()))>;
};

// The gradient as n values, also if the formula returns a single one.
template <class T, std::size_t n>
CATENA_FN Grads<T, n> grads(const Grads<T, n>& g) {
    return g;
}
template <class T, std::size_t n>
CATENA_FN Grads<T, n> grads(const T& g) {
    return {g};
}

}  // namespace detail

// Whether forward is a formula.
template <class F>
concept Elementwise = detail::ForwardTakes<F, (n_inputs<F> + n_attributes<F>)>;
template <class F>
inline constexpr bool backward_takes_y =
    detail::BackwardTakes<F, 2 + n_inputs<F> + n_attributes<F>>;
template <class F>
concept ElementwiseGradient = Elementwise<F> &&
    (backward_takes_y<F> || detail::BackwardTakes<F, 1 + n_inputs<F> + n_attributes<F>>);

// A formula reads an element of every input: it needs inputs, and none may be optional or variadic,
// except the last one of an update.
template <class F>
consteval bool inputs_suit_formula(bool is_update) {
    for (std::size_t i = 0; i < n_inputs<F>; ++i) {
        const bool may_miss = is_update && i > 0 && i + 1 == n_inputs<F>;
        const std::uint32_t refused =
            CATENA_PORT_VARIADIC | (may_miss ? 0u : std::uint32_t{CATENA_PORT_OPTIONAL});
        if ((F::about.inputs[i].flags & refused) != 0) return false;
    }
    return n_inputs<F> > 0;
}

// Calls backward with all arguments, with y only if the formula takes it.
template <class F, class T, std::size_t... X, std::size_t... A>
CATENA_FN auto gradient_of(const T& gy, const T* x, const T& y, const T* attrs,
                           std::index_sequence<X...>, std::index_sequence<A...>) {
    constexpr std::size_t n = sizeof...(X);
    if constexpr (backward_takes_y<F>)
        return detail::grads<T, n>(F::template backward<T>(gy, x[X]..., y, attrs[A]...));
    else return detail::grads<T, n>(F::template backward<T>(gy, x[X]..., attrs[A]...));
}
template <class F, class T>
CATENA_FN auto gradient_of(const T& gy, const T* x, const T& y, const T* attrs) {
    return gradient_of<F, T>(gy, x, y, attrs, std::make_index_sequence<n_inputs<F>>(),
                             std::make_index_sequence<n_attributes<F>>());
}

// The values that backward needs, determined by running it on Probe.
struct Retained {
    std::uint64_t x = 0;
    std::uint64_t y = 0;
};
template <ElementwiseGradient F>
consteval Retained retained_by_formula() {
    constexpr std::size_t n = n_inputs<F>;
    Probe x[n + 1];
    for (std::size_t i = 0; i < n; ++i) x[i] = Probe::argument(static_cast<int>(i));
    const Probe attrs[n_attributes<F> + 1] = {};
    std::uint64_t uses = 0;
    const auto result = gradient_of<F>(Probe::argument(63), x, Probe::argument(62), attrs);
    for (const Probe& g : result.values) uses |= g.uses;
    return {uses & ((std::uint64_t{1} << n) - 1), uses >> 62 & 1};
}
// Returns the values that the formula needs and those that F itself declares.
template <class F>
consteval Retained retained_of() {
    Retained r;
    if constexpr (ElementwiseGradient<F>) r = retained_by_formula<F>();
    if constexpr (requires { F::retain_x; }) r.x |= F::retain_x;
    if constexpr (requires { F::retain_y; }) r.y |= F::retain_y;
    return r;
}

namespace detail {

template <class F>
constexpr bool retains_x(std::size_t i) {
    constexpr std::size_t n = n_inputs<F>;
    constexpr bool variadic = n > 0 && (F::about.inputs[n - 1].flags & CATENA_PORT_VARIADIC) != 0;
    const std::size_t bit = variadic && i + 1 >= n ? 63 : i;  // CATENA_RETAIN_REST
    return bit < 64 && (retained_of<F>().x >> bit & 1) != 0;
}
template <class F>
constexpr bool retains_y(std::size_t i) {
    return i < 64 && (retained_of<F>().y >> i & 1) != 0;
}
// A value that is not retained is missing; treating it as zero would give a wrong gradient.
[[noreturn, gnu::cold]] void fail_unretained(const char* function, const char* what, char port,
                                             std::size_t i);
[[noreturn, gnu::cold]] void fail_missing(const char* function, const char* what, std::size_t i);

}  // namespace detail

// Attributes, converted to the formula's type.
template <class F, class T>
std::array<T, n_attributes<F> + 1> formula_attributes(const catena_value* attrs) {
    std::array<T, n_attributes<F> + 1> values{};
    std::size_t i = 0;
    for (const Attribute& about : F::about.attrs) {
        const bool real = about.kind == CATENA_ATTR_FLOAT;
        values[i] = static_cast<T>(real ? attrs[i].v.f : static_cast<double>(attrs[i].v.i));
        ++i;
    }
    return values;
}

// The dtypes for which F has kernels, including half precision: Floating by default.
template <class F>
constexpr auto types_of() {
    if constexpr (requires { typename F::types; }) return typename F::types();
    else return Floating();
}

// The type in which a formula computes a row: its only type besides bool. Rows of bool alone are
// computed in int8_t, which has the same size, so they are not converted.
template <class First, class... T>
struct FormulaTypeOf {
    using type = First;
    static_assert((... && (std::is_same_v<T, First> || std::is_same_v<T, bool>)),
                  "the dtypes of a formula are one type, and bool");
};
template <class... T>
struct FormulaTypeOf<bool, T...> : FormulaTypeOf<T...> {};
template <>
struct FormulaTypeOf<bool> {
    using type = std::int8_t;
};
template <class... T>
using FormulaType = typename FormulaTypeOf<T...>::type;

// Returns the first input with the type variable of the output, whose dtype is that of the output.
// Without one, the output is bool, and this returns -1.
template <class F>
consteval int typed_as_output() {
    const std::string_view output = F::about.outputs[0].type_var;
    for (std::size_t i = 0; i < n_inputs<F>; ++i)
        if (output == F::about.inputs[i].type_var) return static_cast<int>(i);
    return -1;
}

namespace detail {
// Infers the shape that the inputs broadcast to by NumPy's rule: aligned at the last axis, extents
// are equal or 1. whole: for integer inputs, attributes must be integers of their dtype. like: the
// input whose dtype y has; -1: y is bool.
catena_status infer_elementwise(catena_ctx* ctx, const catena_function& f, bool whole, int like,
                                const catena_value* attrs, const catena_meta* const* x,
                                catena_meta& y) noexcept;
}  // namespace detail

}  // namespace catena::plugin
