// Calls from Python with inputs of different floating dtypes: Chainer's rule, for all functions.
#pragma once

#include <catena/catena.hpp>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace catena::python {

// How a function promotes inputs of different floating dtypes; the names of its parameters decide.
enum class Mixing {
    refused,  // it raises DtypeError
    widest,   // products, of a and b or of operands: the result has the widest dtype
    of_x      // layers, of x and W or gamma: the result has the dtype of x
};
Mixing mixing_of(std::span<const std::string_view> parameters);

// The dtype in which inputs of different floating dtypes are computed; empty if all have the same.
// Null pointers and empty variables are missing inputs.
std::optional<Dtype> common_floating_dtype(std::span<const Variable* const> inputs);
// x in another dtype, recorded in the graph, if x is floating.
Variable cast_if_floating(const Variable& x, Dtype dtype);

// Gives inputs of different floating dtypes the widest one.
inline void promote(Variable& a, Variable& b) {
    const Variable* const inputs[] = {&a, &b};
    const auto dtype = common_floating_dtype(inputs);
    if (!dtype) return;
    a = cast_if_floating(a, *dtype);
    b = cast_if_floating(b, *dtype);
}

}  // namespace catena::python
