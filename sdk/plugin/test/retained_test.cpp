// Tests that reading an array that is not retained is an error, and reading a missing input is not.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

TEST_CASE("reading what is not retained") {
    World world(FORGOT);
    const std::vector<Array> x = {Array::from<double>({3, 4}, {2}),
                                  Array::from<double>({5, 6}, {2}), Array::from<double>({7}, {1})};
    const std::vector<Array> gy = {Array::from<double>({1, 1}, {2})};
    const auto composed = [&](const char* name) {
        return world.gradient(name, x, world.forward(name, x), gy);
    };
    const auto kernel = [&](const char* name) {
        return world.backward(name, x, world.forward(name, x), gy);
    };
    CHECK_THROWS_WITH(
        composed("org.example.forgot_x"),
        "[org.example.forgot_x] gradient: expected inputs that retain_x names, got x(0)");
    CHECK_THROWS_WITH(
        composed("org.example.forgot_y"),
        "[org.example.forgot_y] gradient: expected outputs that retain_y names, got y(0)");
    CHECK_THROWS_WITH(
        kernel("org.example.forgot_kernel_x"),
        "[org.example.forgot_kernel_x] backward: expected inputs that retain_x names, got x(2)");
    CHECK_THROWS_WITH(
        kernel("org.example.forgot_kernel_y"),
        "[org.example.forgot_kernel_y] backward: expected outputs that retain_y names, got y(0)");
    CHECK(conform(world, "org.example.product").failures() == "");
}
