// Dtypes within compositions.
#pragma once

#include "catena/plugin/compose.hpp"

namespace catena::plugin {

inline Var in_dtype(const Var& x, catena_dtype dtype) {
    return same(x.dtype(), dtype) ? x : cast(x, dtype);
}
inline bool is_floating(catena_dtype dtype) {
    return dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT;
}
// The attribute "dtype", which must be floating.
inline catena_dtype floating_dtype(const auto& g) {
    const catena_dtype dtype = g.template attr<"dtype">();
    g.check(is_floating(dtype), "dtype", "a floating one", text_of(dtype), CATENA_E_DTYPE);
    return dtype;
}
// Input i, which must be floating: constants would be refused or rounded for integers.
inline Var check_floating(const auto& g, std::size_t i) {
    const catena_dtype dtype = g.x_meta(i).dtype;
    g.check(is_floating(dtype), g.raw().function->inputs[i]->name, "a floating dtype",
            text_of(dtype), CATENA_E_DTYPE);
    return g.x(i);
}
// Half precision in float32, for sums and differences that it does not hold.
inline Var widened(const Var& x) { return is_half(x.dtype()) ? cast(x, dtype_of<float>()) : x; }

}  // namespace catena::plugin
