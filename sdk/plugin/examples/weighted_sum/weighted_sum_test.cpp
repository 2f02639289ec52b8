// weighted_sum: a call that must be refused is a case too.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;
using catena::plugin::Floats;

TEST_CASE("weighted_sum") {
    World world(PLUGIN);
    const double factors[] = {0.5, -2};
    const Floats weights = factors;
    const Array a = Array::from<double>({1, 2, 3}, {3});
    const Array b = Array::from<double>({4, 0, -1}, {3});
    const std::string name = "org.example.weighted_sum";
    CHECK(check(world, {.function = name,
                        .inputs = {a, b},
                        .attrs = {set("weights", weights)},
                        .expected = {Array::from<double>({-7.5, 1, 3.5}, {3})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {a, b, a},
                        .attrs = {set("weights", weights)},
                        .error = "weights: expected 3 numbers, got 2"}) == "");
    CHECK(conform(world, name).failures() == "");
}
