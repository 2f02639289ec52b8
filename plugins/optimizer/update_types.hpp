// Shared declarations of the updates: the dtypes of their state, and ranges of attributes.
#pragma once

#include <limits>

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// The state (S) of half-precision parameters is float32: half precision would lose small squares.
using UpdateTypes = Rows<Row<float, float>, Row<double, double>>;
constexpr Port state(const char* name, const char* doc) {
    return Port(name, doc).of("S").mutated();
}

constexpr Attribute not_negative(const Attribute& attribute) {
    return attribute.range(0, std::numeric_limits<double>::max());
}
// Weight decay that is not part of the gradient (Loshchilov and Hutter, ICLR 2019).
constexpr Attribute decoupled_decay(double value) {
    return not_negative(
        attr("decay", value, "decoupled weight decay: param -= rate * decay * param"));
}
constexpr Attribute below_one(const Attribute& attribute) {
    return attribute.range(0, 1 - 0x1p-53);
}

}  // namespace catena::plugins
