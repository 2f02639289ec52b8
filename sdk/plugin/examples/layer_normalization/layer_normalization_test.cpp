// layer_normalization: two rows, computed by hand; their means are 2 and 0, their var 2/3 and 0.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

TEST_CASE("layer_normalization") {
    World world(PLUGIN);
    const std::string name = "org.example.layer_normalization";
    const Array x = Array::from<double>({1, 2, 3, 0, 0, 0}, {2, 3});
    const Array gamma = Array::from<double>({1, 2, 4}, {3});
    const Array beta = Array::from<double>({0, 1, 0.5}, {3});
    const double r = 1 / std::sqrt(2.0 / 3 + 1e-2);
    CHECK(check(world, {.function = name,
                        .inputs = {x, gamma, beta},
                        .attrs = {set("eps", 1e-2)},
                        .expected = {Array::from<double>({-r, 1, 4 * r + 0.5, 0, 1, 0.5}, {2, 3}),
                                     Array::from<double>({2, 0}, {2}),
                                     Array::from<double>({r, 10}, {2})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {x, beta, Array::from<double>({1, 1}, {2})},
                        .error = "beta.shape: expected (3,), got (2,)"}) == "");
    CHECK(conform(world, name).failures() == "");
}
