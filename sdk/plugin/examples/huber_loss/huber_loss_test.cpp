// huber_loss: both valid values, and an invalid one.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("huber_loss") {
    World world(PLUGIN);
    const std::string name = "org.example.huber_loss";
    const std::vector<Array> inputs = {Array::from<double>({0.5, -3, 2, 0}, {4}),
                                       Array::from<double>({0, 0, 0.25, 0.5}, {4})};
    CHECK(check(world, {.function = name,
                        .inputs = inputs,
                        .attrs = {set("reduce", "sum")},
                        .expected = {Array::from<double>({0.125 + 2.5 + 1.25 + 0.125}, {})}}) ==
          "");
    CHECK(check(world,
                {.function = name, .inputs = inputs, .expected = {Array::from<double>({1}, {})}}) ==
          "");
    CHECK(check(world, {.function = name,
                        .inputs = inputs,
                        .attrs = {set("reduce", "median")},
                        .error = "'reduce': expected one of mean, sum, got 'median'"}) == "");
    CHECK(conform(world, name).failures() == "");
}
