// keep_largest: hidden outputs are expected like others.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("keep_largest") {
    World world(PLUGIN);
    const std::string name = "org.example.keep_largest";
    CHECK(check(world, {.function = name,
                        .inputs = {Array::of<double>({2, 3}, {3, -5, 1, 0.5, -0.25, 0})},
                        .attrs = {set("k", 2)},
                        .expected = {Array::of<double>({2, 3}, {3, -5, 0, 0.5, -0.25, 0}),
                                     Array::of<std::uint8_t>({2, 3}, {1, 1, 0, 1, 1, 0})}}) == "");

    const Array equal = Array::of<double>({4}, {1, -2, 2, 2});  // of equal ones the first
    const Array y = world.forward(name, {equal}, {set("k", 2)})[0];
    CHECK(compare(y, Array::of<double>({4}, {0, -2, 2, 0}), {}) == "");

    CHECK(conform(world, name).failures() == "");
}
