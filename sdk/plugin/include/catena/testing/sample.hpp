// Numbers for an example: which dtypes its reference has, what its inputs hold.
#pragma once

#include <optional>

#include "catena/testing/example.hpp"
#include "catena/testing/world.hpp"

namespace catena::testing {

// An example with numbers, in the widest dtypes that the function has kernels for.
struct Sample {
    std::string text;
    Example example;
    std::vector<Array> x;
    std::vector<Array> y;
    bool train = true;
};

// Throws a Failure where the function refuses the call.
Sample make_sample(World& world, const catena_function& f, const Example& example, unsigned seed,
                   bool train = true);

// A call that a function without examples accepts; the same seed finds the same.
std::optional<Example> find_example(World& world, const catena_function& f, unsigned seed = 1,
                                    int tries = 20000);

// Calls that a function is known to accept, as far as its examples can be read.
struct Examples {
    std::vector<Example> calls;
    int declared = 0;                 // by the function
    bool found = false;               // by trying, since it declares none
    std::vector<std::string> faults;  // of those that cannot be read
};
Examples examples_of(World& world, const catena_function& f, unsigned seed = 1);

}  // namespace catena::testing
