// squared_error_c: a composition in C passes what the SDK checks of every function.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("squared_error_c") {
    World world(PLUGIN);
    CHECK(check(world, {.function = "org.example.c.squared_error",
                        .inputs = {Array::from<double>({1, 2, 3, 4}, {2, 2}),
                                   Array::from<double>({2, 0}, {2})},
                        .expected = {Array::from<double>({1, 4, 1, 16}, {2, 2})}}) == "");
    CHECK(conform(world, "org.example.c.squared_error").failures() == "");
}
