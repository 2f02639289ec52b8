// focal_loss: by hand for two classes, and what the SDK checks of every function.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

TEST_CASE("focal_loss") {
    World world(PLUGIN);
    const auto loss = [](double p) { return -(1 - p) * (1 - p) * std::log(p); };
    const double odds = std::exp(2.0);
    CHECK(check(world, {.function = "org.example.focal_loss",
                        .inputs = {Array::from<double>({0, 2, 1, 1}, {2, 2}),
                                   Array::from<std::int64_t>({1, 0}, {2})},
                        .expected = {Array::from<double>(
                            {(loss(odds / (1 + odds)) + loss(0.5)) / 2}, {})}}) == "");
    CHECK(conform(world, "org.example.focal_loss").failures() == "");
}
