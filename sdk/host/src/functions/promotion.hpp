// Common dtypes of operands: bool < uint8 < int32 < int64 < floating dtypes. See ADR 0018.
#pragma once

#include "../support.hpp"
#include "operands.hpp"

#include <catena/operators.hpp>

namespace catena {

inline bool is_floating(const Array& x) {
    const std::uint8_t code = x.body()->meta.dtype.code;
    return code == CATENA_CODE_FLOAT || code == CATENA_CODE_BFLOAT;
}
inline bool same_dtype(const Array& a, const Array& b) {
    return same(a.body()->meta.dtype, b.body()->meta.dtype);
}

// Returns the higher dtype; of two floating dtypes the first.
Dtype common_dtype(Dtype a, Dtype b);
// Returns the dtype of x next to a number. An integer number does not change it, but for bool, which
// becomes int32. A floating number changes integers and bool to float32.
Dtype common_dtype(Dtype x, Scalar c);
// Returns the dtype of results of arithmetic with x: int32 for bool.
inline Dtype arithmetic_dtype(Dtype x) { return x == Dtype::bool8 ? Dtype::int32 : x; }
// Returns the dtype in which such a result is computed: kernels have no arithmetic of uint8.
inline Dtype computed_dtype(Dtype x) { return x == Dtype::uint8 ? Dtype::int32 : x; }
// Returns the highest dtype in a list. Throws for empty handles, and for two floating dtypes.
template <class X>
Dtype common_dtype(const char* function, const char* list, std::span<const X> xs) {
    expect_each(function, list, xs);
    Dtype dtype = Dtype::bool8;
    for (std::size_t i = 0; i < xs.size(); ++i) {
        const Dtype other = xs[i].dtype();
        if (is_floating(dtype) && is_floating(other) && dtype != other)
            fail<DtypeError>("[{}] {}[{}].dtype: expected {}, got {}", function, list, i,
                             name(dtype), name(other));
        dtype = common_dtype(dtype, other);
    }
    return dtype;
}

// Returns integers or bool in another dtype; uint8 gets them modulo 256. Returns floating x itself, so
// that a function of two different floating dtypes reports them.
inline Array promoted(const Array& x, Dtype dtype) {
    return is_floating(x) || x.dtype() == dtype ? x : x.astype(dtype);
}
Variable promoted(const Variable& x, Dtype dtype);

// Calls a function that has one output.
template <class X, std::same_as<X>... Others>
X run(const PluginFunction& function, const X& x, const Others&... others) {
    if constexpr (std::same_as<X, Variable>) {
        return function.first({&x, &others...});
    } else if constexpr (sizeof...(Others) == 0) {
        return function.first(std::span(&x, 1));
    } else {
        const Array inputs[] = {x, others...};
        return function.first(inputs);
    }
}

// Returns f(x...) for operands in the dtype in which `dtype` is computed, converted to `dtype`.
template <class F, class... X>
auto run_in(Dtype dtype, const F& f, const X&... x) {
    return promoted(f(promoted(x, computed_dtype(dtype))...), dtype);
}

// Returns c as a 0-d array with the dtype and on the device of x.
inline Array constant_like(const Array& x, double c) {
    return Array::full({}, c, x.dtype(), x.device());
}
inline Variable constant_like(const Variable& x, double c) {
    return as_variable(constant_like(x.data(), c));
}

}  // namespace catena
