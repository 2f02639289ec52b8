// check(): one call in three things: its inputs, how it is called, what is expected of it.
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
    std::vector<Array> inputs = {};  // floats are taken as float64; Array() for a missing one
    Attrs attrs = {};
    // Outputs, then inputs that are updated; Array() for what is not compared. Without any, kernels
    // and gradients are still measured by each other and by finite differences.
    std::vector<Array> expected = {};
    std::string error = {};  // or the call has to be refused, with a text that holds this
    Tolerance digits = {};   // as many as expected numbers are written with
    double step = 1e-4;      // of finite differences
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance differences = {1e-5, 1e-6};
    bool train = true;
    // And other shapes, derived from these: empty, of size 1, wrong ones. By default where there
    // are expected outputs, which make a case a whole test of its function.
    std::optional<bool> edges = {};
};

// The results of all checks of one call.
Report examine(World& world, const Case& c);

// Empty if all is well, else one line for each problem.
inline std::string check(World& world, const Case& c) { return examine(world, c).failures(); }

}  // namespace catena::testing
