// gram: the test host provides a simple catena.blas/1.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("gram") {
    World world(PLUGIN);
    CHECK(check(world, {.function = "org.example.gram",
                        .inputs = {Array::from<double>({1, 2, 3, 4, 5, 6}, {3, 2})},
                        .expected = {Array::from<double>({35, 44, 44, 56}, {2, 2})}}) == "");
    CHECK(conform(world, "org.example.gram").failures() == "");
}
