// What the updates have in common: the dtype of their state, and what their attributes may be.
#pragma once

#include <limits>

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// State (S) of parameters in float16 and bfloat16 is float32: small squares would be lost in theirs.
using UpdateTypes = Rows<Row<float, float>, Row<double, double>>;
constexpr Port state(const char* name, const char* doc) {
    return Port(name, doc).of("S").mutated();
}

constexpr Attribute not_negative(const Attribute& attribute) {
    return attribute.range(0, std::numeric_limits<double>::max());
}
constexpr Attribute below_one(const Attribute& attribute) {
    return attribute.range(0, 1 - 0x1p-53);
}

}  // namespace catena::plugins
