// Samples: examples with dtypes and numbers for the inputs.
#pragma once

#include <optional>

#include "catena/testing/example.hpp"
#include "catena/testing/world.hpp"

namespace catena::testing {

// An example with numbers, in the widest dtypes that the function has kernels for.
struct Sample {
    std::string text;
    Example example;
    Arrays x;
    Arrays y;
    bool train = true;
};

// Throws a Failure if the function refuses the call.
Sample make_sample(World& world, const catena_function& f, const Example& example, unsigned seed,
                   bool train = true);

// Finds a call that a function without examples accepts. The same seed finds the same call.
std::optional<Example> find_example(World& world, const catena_function& f, unsigned seed = 1,
                                    int tries = 20000);

// Calls that a function accepts: its examples, or a call that was found by trying.
struct Examples {
    std::vector<Example> calls;
    int declared = 0;                 // number of examples that the function declares
    bool found = false;               // it declares none, and a call was found by trying
    std::vector<std::string> faults;  // a message for each example that cannot be read
};
Examples examples_of(World& world, const catena_function& f, unsigned seed = 1);

}  // namespace catena::testing
