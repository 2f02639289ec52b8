// layer_normalization: two rows by hand; the mean of each is 2 and 0, var 2/3 and 0.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("layer_normalization") {
    World world(PLUGIN);
    const std::string name = "org.example.layer_normalization";
    const Array x = Array::of<double>({2, 3}, {1, 2, 3, 0, 0, 0});
    const Array gamma = Array::of<double>({3}, {1, 2, 4});
    const Array beta = Array::of<double>({3}, {0, 1, 0.5});
    const double r = 1 / std::sqrt(2.0 / 3 + 1e-2);
    CHECK(check(world, {.function = name,
                        .inputs = {x, gamma, beta},
                        .attrs = {set("eps", 1e-2)},
                        .expected = {Array::of<double>({2, 3}, {-r, 1, 4 * r + 0.5, 0, 1, 0.5}),
                                     Array::of<double>({2}, {2, 0}),
                                     Array::of<double>({2}, {r, 10})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {x, beta, Array::of<double>({2}, {1, 1})},
                        .error = "beta.shape: expected (3,), got (2,)"}) == "");
    CHECK(conform(world, name).failures() == "");
}
