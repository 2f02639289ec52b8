// log_sum_exp: numbers whose exponentials overflow, both axes, infinities.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("log_sum_exp") {
    World world(PLUGIN);
    const std::string name = "org.example.log_sum_exp";
    const Array x = Array::from<double>({1, 2, 3, 5, 5, -5}, {2, 3});
    CHECK(check(world, {.function = name,
                        .inputs = {x},
                        .expected = {Array::from<double>({3.4076059644443806, 5.693169880267186},
                                                         {2})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {x},
                        .attrs = {set("axis", 0)},
                        .expected = {Array::from<double>(
                            {5.0181499279178094, 5.048587351573742, 3.0003354063728955}, {3})}}) ==
          "");

    const double infinity = std::numeric_limits<double>::infinity();
    const Array ends =
        Array::from<double>({1000, -1000, -infinity, -infinity, 0, infinity}, {3, 2});
    const Array y = Array::from<double>({1000, -infinity, infinity}, {3});
    CHECK(compare(world.forward(name, {ends})[0], y, {}) == "");

    CHECK(conform(world, name).failures() == "");
}
