// softplus: a case has inputs, a call and the expected output. The SDK adds gradients of both
// orders, every dtype, every instruction set, edge cases of shapes, and checks for writes out of
// bounds.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("softplus") {
    World world(PLUGIN);
    CHECK(check(world, {.function = "org.example.softplus",
                        .inputs = {Array::from<double>({-2, 0, 1, 800}, {4})},
                        .attrs = {set("beta", 4.0)},
                        .expected = {Array::from<double>(
                            {8.385159322394221e-05, 0.17328679513998632, 1.0045374819794524, 800},
                            {4})}}) == "");
    CHECK(conform(world, "org.example.softplus").failures() == "");
}
