// log_sum_exp: numbers whose exponentials overflow, both axes, infinities.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("log_sum_exp") {
    World world(PLUGIN);
    const std::string name = "org.example.log_sum_exp";
    const Array x = Array::of<double>({2, 3}, {1, 2, 3, 5, 5, -5});
    CHECK(check(world, {.function = name,
                        .inputs = {x},
                        .expected = {Array::of<double>(
                            {2}, {3.4076059644443806, 5.693169880267186})}}) == "");
    CHECK(check(world, {.function = name,
                        .inputs = {x},
                        .attrs = {set("axis", 0)},
                        .expected = {Array::of<double>({3}, {5.0181499279178094, 5.048587351573742,
                                                             3.0003354063728955})}}) == "");

    const double infinity = std::numeric_limits<double>::infinity();
    const Array ends = Array::of<double>({3, 2}, {1000, -1000, -infinity, -infinity, 0, infinity});
    const Array y = Array::of<double>({3}, {1000, -infinity, infinity});
    CHECK(compare(world.forward(name, {ends})[0], y, {}) == "");

    CHECK(conform(world, name).failures() == "");
}
