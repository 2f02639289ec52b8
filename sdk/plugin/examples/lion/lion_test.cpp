// lion_update: an update has no outputs; the expected arrays are the updated inputs.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("lion_update") {
    World world(PLUGIN);
    CHECK(check(world, {.function = "org.example.lion_update",
                        .inputs = {Array::from<double>({1, -2}, {2}),
                                   Array::from<double>({0.5, -0.25}, {2}),
                                   Array::from<double>({-0.1, 0.2}, {2})},
                        .attrs = {set("lr", 0.1), set("decay", 0.5)},
                        .expected = {Array::from<double>({1.05, -2}, {2}),
                                     Array::from<double>({-0.094, 0.1955}, {2})}}) == "");
    CHECK(conform(world, "org.example.lion_update").failures() == "");
}
