// Elementwise functions: what the SDK learns from their formulas, and NumPy broadcasting of shapes.
//
//     template <class T> CATENA_FN static T forward(T x..., T attribute...);
//     template <class T> CATENA_FN static Grads<T, n> backward(T gy, T x..., [T y,] T attribute...);
//
// Attributes are numbers and come last. What backward does not use of x and y is not kept alive.
#pragma once

#include <algorithm>
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
    backward_result<F, float>(std::make_index_sequence<n>());
}
&&!std::is_void_v<decltype(backward_result<F, float>(std::make_index_sequence<n>()))>;

// The gradient as n values, also where the formula returns just one.
template <class T, std::size_t n>
CATENA_FN Grads<T, n> grads(const Grads<T, n>& g) {
    return g;
}
template <class T, std::size_t n>
CATENA_FN Grads<T, n> grads(const T& g) {
    return {g};
}

}  // namespace detail

// Its forward is a formula.
template <class F>
concept Elementwise = detail::ForwardTakes < F,
        n_inputs<F>
+ n_attributes < F >> ;
template <class F>
inline constexpr bool backward_takes_y =
    detail::BackwardTakes<F, 2 + n_inputs<F> + n_attributes<F>>;
template <class F>
concept ElementwiseGradient = Elementwise<F> &&
    (backward_takes_y<F> || detail::BackwardTakes<F, 1 + n_inputs<F> + n_attributes<F>>);

// A formula reads an element of every input: there are some, and they are always there, once.
template <class F>
consteval bool inputs_suit_formula() {
    for (const Port& port : F::about.inputs)
        if ((port.flags & (CATENA_PORT_OPTIONAL | CATENA_PORT_VARIADIC)) != 0) return false;
    return n_inputs<F> > 0;
}

// backward of all arguments, whether the formula takes y or not.
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

// What backward needs: run once on Probe.
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
// As its formula reads, and as F itself says.
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
// What is not retained is gone; to take it for zero would be a wrong gradient.
[[noreturn, gnu::cold]] inline void fail_unretained(const char* function, const char* what,
                                                    char port, std::size_t i) {
    fail(CATENA_E_INTERNAL, function, what,
         std::string(port == 'x' ? "inputs" : "outputs") + " that retain_" + port + " names",
         std::string(1, port) + "(" + std::to_string(i) + ")");
}
[[noreturn, gnu::cold]] inline void fail_missing(const char* function, const char* what,
                                                 std::size_t i) {
    fail(CATENA_E_INTERNAL, function, what, "inputs that has() says are there",
         "x(" + std::to_string(i) + ")");
}

}  // namespace detail

// Attributes as numbers of the formula's type.
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

// The dtypes that F has kernels for, with those of its halves: Floating if it names none.
template <class F>
struct TypesOf {
    using type = Floating;
};
template <class F>
requires requires { typename F::types; }
struct TypesOf<F> {
    using type = typename F::types;
};

// Integers take attributes that are such integers.
template <class F>
void check_whole(const catena_value* attrs, catena_dtype dtype) {
    for (std::size_t i = 0; i < n_attributes<F>; ++i) {
        if (F::about.attrs[i].kind != CATENA_ATTR_FLOAT) continue;
        const double value = attrs[i].v.f;
        const double limit = dtype.bits == 32 ? 0x1p31 : 0x1p63;
        if (!(value >= -limit && value < limit) ||
            value != static_cast<double>(static_cast<std::int64_t>(value)))
            fail(CATENA_E_DTYPE, F::about.name, F::about.attrs[i].name, "an " + text_of(dtype),
                 value);
    }
}

// NumPy's rule: aligned at the last axis, extents are equal or 1.
template <class F>
void infer_broadcast(const catena_meta* const* x, catena_meta& y) {
    for (std::size_t i = 1; i < n_inputs<F>; ++i) {
        const catena_meta& a = *x[i];
        const std::int32_t ndim = std::max(a.ndim, y.ndim);
        for (std::int32_t d = 0; d < ndim; ++d) {  // from the last axis, growing y in place
            const std::int64_t p = d < a.ndim ? a.shape[a.ndim - 1 - d] : 1;
            const std::int64_t q = d < y.ndim ? y.shape[y.ndim - 1 - d] : 1;
            if (p != q && p != 1 && q != 1)
                fail(
                    CATENA_E_SHAPE, F::about.name,
                    (std::string(F::about.inputs[i].name) + ".shape").c_str(),
                    "broadcastable to " + text_of(Shape(y.shape, static_cast<std::size_t>(y.ndim))),
                    Shape(a.shape, static_cast<std::size_t>(a.ndim)));
        }
        if (a.ndim > y.ndim) {
            std::copy_backward(y.shape, y.shape + y.ndim, y.shape + a.ndim);
            std::fill(y.shape, y.shape + (a.ndim - y.ndim), 1);
            y.ndim = a.ndim;
        }
        for (std::int32_t d = 0; d < a.ndim; ++d) {
            std::int64_t& q = y.shape[y.ndim - 1 - d];
            if (q == 1) q = a.shape[a.ndim - 1 - d];
        }
    }
}

template <Elementwise F>
catena_status CATENA_CALL infer_elementwise(catena_ctx* ctx, const catena_value* attrs,
                                            const catena_meta* const* x, std::uint32_t,
                                            catena_meta* const* y, std::uint32_t) noexcept {
    catena_meta& out = *y[0];
    const catena_meta& first = *x[0];
    out.ndim = first.ndim;
    out.dtype = first.dtype;
    out.device_type = first.device_type;
    for (std::int32_t d = 0; d < first.ndim; ++d) out.shape[d] = first.shape[d];
    bool equal = true;
    for (std::size_t i = 1; i < n_inputs<F>; ++i) {
        equal = equal && x[i]->ndim == first.ndim &&
                std::equal(first.shape, first.shape + first.ndim, x[i]->shape);
    }
    const bool whole = n_attributes<F> > 0 && std::is_same_v<typename TypesOf<F>::type, Numbers> &&
                       first.dtype.code == CATENA_CODE_INT;
    if (equal && !whole) [[likely]]
        return CATENA_OK;
    return guarded(ctx, [&] {
        if (whole) check_whole<F>(attrs, first.dtype);
        infer_broadcast<F>(x, out);
    });
}

}  // namespace catena::plugin
