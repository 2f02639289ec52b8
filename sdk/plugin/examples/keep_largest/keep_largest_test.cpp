// keep_largest: expected hidden outputs are listed like others.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("keep_largest") {
    World world(PLUGIN);
    const std::string name = "org.example.keep_largest";
    CHECK(check(world, {.function = name,
                        .inputs = {Array::from<double>({3, -5, 1, 0.5, -0.25, 0}, {2, 3})},
                        .attrs = {set("k", 2)},
                        .expected = {Array::from<double>({3, -5, 0, 0.5, -0.25, 0}, {2, 3}),
                                     Array::from<std::uint8_t>({1, 1, 0, 1, 1, 0}, {2, 3})}}) ==
          "");

    const Array equal = Array::from<double>({1, -2, 2, 2}, {4});  // keeps the first of equal values
    const Array y = world.forward(name, {equal}, {set("k", 2)})[0];
    CHECK(compare(y, Array::from<double>({0, -2, 2, 0}, {4}), {}) == "");

    CHECK(conform(world, name).failures() == "");
}
