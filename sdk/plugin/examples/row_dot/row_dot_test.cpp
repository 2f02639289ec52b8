// row_dot: gradients of every order come from the composition.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("row_dot") {
    World world(PLUGIN);
    CHECK(check(world, {.function = "org.example.row_dot",
                        .inputs = {Array::from<double>({1, 2, 3, 4, 5, 6}, {2, 3}),
                                   Array::from<double>({1, 0, -1, 2, 2, 2}, {2, 3})},
                        .expected = {Array::from<double>({-2, 30}, {2})}}) == "");
    CHECK(conform(world, "org.example.row_dot").failures() == "");
}
