// Overloads of functions as in Chainer: with numbers, several variables, or an explicit mode.
#pragma once

#include <catena/core/config.hpp>
#include <catena/functions.hpp>
#include <catena/operators.hpp>

#include <array>

namespace catena::functions {

// F::pow(x, 2), F::pow(2, x): catena::pow() with a number.
template <Operand X>
X pow(const X& x, double exponent) {
    return catena::pow(x, exponent);
}
template <Operand X>
X pow(double base, const X& x) {
    return catena::pow(base, x);
}

// Returns several inputs unchanged: const auto [a, b] = F::identity(x, y).
template <Operand X, std::same_as<X>... Others>
requires(sizeof...(Others) >
         0) std::array<X, 1 + sizeof...(Others)> identity(const X& x, const Others&... others) {
    return {identity(x), identity(others)...};
}

// Dropout if train, else x, independent of config().train.
template <Operand X>
X dropout(const X& x, double ratio, bool train) {
    if (!train) return x;
    const using_config scope(&Config::train, true);
    return dropout(x, ratio);
}

}  // namespace catena::functions
