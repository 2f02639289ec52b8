// Random numbers of compositions, which are the same for all dtypes.
#pragma once

#include <catena/plugin/precision.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// From U[low, high) and N(0, 1): numbers of float32 in another floating dtype.
inline Var uniform(Shape shape, catena_dtype dtype, double low = 0, double high = 1) {
    return in_dtype(
        call<"catena.uniform">({}, {set("shape", shape), set("low", low), set("high", high)}),
        dtype);
}
inline Var normal(Shape shape, catena_dtype dtype) {
    return in_dtype(call<"catena.normal">({}, {set("shape", shape)}), dtype);
}

}  // namespace catena::plugins
