// What the tests of array.catena share.
#pragma once

#include <catena/testing.hpp>

inline catena::testing::World& world() {
    static catena::testing::World world({ARRAY_PLUGIN, MATH_PLUGIN});
    return world;
}
// 0, 1, 2, ... as float64.
inline catena::testing::Array iota(catena::testing::Dims shape) {
    catena::testing::Array a(std::move(shape), catena::testing::dtype_of<double>());
    for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(i));
    return a;
}
