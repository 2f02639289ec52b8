// polar: both outputs.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

TEST_CASE("polar") {
    World world(PLUGIN);
    const double pi = std::acos(-1.0);
    CHECK(check(world, {.function = "org.example.polar",
                        .inputs = {Array::from<double>({3, -1, 0}, {3}),
                                   Array::from<double>({4, 1, -2}, {3})},
                        .expected = {Array::from<double>({5, std::sqrt(2.0), 2}, {3}),
                                     Array::from<double>({std::atan(4.0 / 3), 3 * pi / 4, -pi / 2},
                                                         {3})}}) == "");
    CHECK(conform(world, "org.example.polar").failures() == "");
}
