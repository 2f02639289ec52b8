// centre: expected updated inputs follow the outputs; tests run with and without training mode.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("centre") {
    World world(PLUGIN);
    const std::string name = "org.example.centre";
    const std::vector<Array> inputs = {Array::from<double>({1, 2, 3, 6}, {2, 2}),
                                       Array::from<double>({0, 8}, {2})};
    CHECK(check(world, {.function = name,
                        .inputs = inputs,
                        .attrs = {set("decay", 0.75)},
                        .expected = {Array::from<double>({-1, -2, 1, 2}, {2, 2}),
                                     Array::from<double>({0.5, 7}, {2})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = inputs,
                        .expected = {Array::from<double>({1, -6, 3, -2}, {2, 2}), inputs[1]},
                        .train = false}) == "");
    CHECK(conform(world, name).failures() == "");
}
