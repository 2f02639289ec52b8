// Shared declarations of the updates: the dtypes of their state, and attributes that several have.
//
// An update rule is one function, `catena.NAME_update`: its inputs are the parameter, the gradient
// and the state, its attributes the hyperparameters, and an attribute t is the number of the step.
// The classes of C++ and Python are generated from it (tools/catena-inspect/optimizers.cpp). Lines of
// its doc declare them, with the hyperparameters in the order of the constructor's arguments:
//
//     SGD(lr): param -= lr * grad
//
// More lines, `- NAME(ARGUMENTS): TEXT`, declare subclasses of the first class; an argument NAME=VALUE
// is a fixed value. Attributes that no line names are only members in C++. The names have a meaning:
// the learning rate is `lr`, or `alpha` without it, and `weight_decay_rate` is decoupled decay; `eta`
// is a factor of both; `initial_alpha` is the value that alpha had at first. State that is optional
// exists if an attribute is true: its doc ends with `, if NAME`.
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
inline constexpr Port param = Port("param").mutated();

constexpr Attribute not_negative(const Attribute& attribute) {
    return attribute.range(0, std::numeric_limits<double>::max());
}
constexpr Attribute below_one(const Attribute& attribute) {
    return attribute.range(0, 1 - 0x1p-53);
}
constexpr Attribute learning_rate(double value, const char* name = "lr") {
    return not_negative(attr(name, value, "the learning rate"));
}
inline constexpr Attribute eta = not_negative(attr("eta", 1.0, "a factor of all steps and decays"));
// Weight decay that is not part of the gradient (Loshchilov and Hutter, ICLR 2019).
constexpr Attribute weight_decay_rate(double value, const char* doc) {
    return not_negative(attr("weight_decay_rate", value, doc));
}
inline constexpr Attribute step_number =
    required<std::int64_t>("t", "the number of this update, from 1").range(1, 0x1p62);

}  // namespace catena::plugins
