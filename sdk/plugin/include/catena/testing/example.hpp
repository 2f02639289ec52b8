// A call of a function in words, as in catena_function.examples: "x=(2,3)[0.5,2] axis=1". Needs no
// World: other hosts' tests may include it.
#pragma once

#include "catena/testing/array.hpp"
#include "catena/testing/attributes.hpp"
#include "catena/testing/failure.hpp"

namespace catena::testing {

// Shapes, the range of values for each input, and attributes. Text and numbers are apart, so that
// tests can derive other calls from it.
struct Example {
    struct Input {
        bool present = false;
        Dims shape = {};
        bool ranged = false;
        double low = -1;
        double high = 1;
    };
    std::vector<Input> inputs;  // at least one for each port, missing ones included
    OwnedAttrs attrs;
};

// Throws a Failure that says where the text is wrong.
Example parse_example(const catena_function& f, const std::string& text);
std::string text_of(const catena_function& f, const Example& e);

}  // namespace catena::testing
