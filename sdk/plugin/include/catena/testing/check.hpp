// check(): tests one call of a function, given its inputs, its attributes and the expected outputs.
//
//     World world(MY_PLUGIN);
//     CHECK(check(world, {.function = "org.example.swish",
//                         .inputs = {Array::from<double>({0, 1}, {2})},
//                         .attrs = {set("beta", 2.0)},
//                         .expected = {Array::from<double>({0, 0.880797}, {2})}}) == "");
#pragma once

#include "catena/testing/conform.hpp"

namespace catena::testing {

struct Case {
    std::string function = {};
    std::vector<Array> inputs = {};  // floats in float64; Array() for a missing input
    Attrs attrs = {};
    // The outputs, then the inputs that are updated. An empty Array() is not compared. If the list is
    // empty, kernels and gradients are still compared with each other and with finite differences.
    std::vector<Array> expected = {};
    std::string error = {};  // if not empty, the call must be refused with a message containing it
    Tolerance digits = {};   // for `expected`: the precision to which its numbers are written
    double step = 1e-4;      // of finite differences
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance differences = {1e-5, 1e-6};
    bool train = true;
    // Whether other shapes are derived from the inputs and tested: empty, of extent 1, wrong. The
    // default is true if there are expected outputs.
    std::optional<bool> edges = {};
};

// The results of all checks of one call.
Report examine(World& world, const Case& c);

// Returns an empty string, or a line for each problem.
inline std::string check(World& world, const Case& c) { return examine(world, c).failures(); }

}  // namespace catena::testing
