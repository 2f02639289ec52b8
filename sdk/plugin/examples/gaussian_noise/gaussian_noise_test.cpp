// Tests the moments of gaussian_noise, and that its values do not depend on the number of threads.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

TEST_CASE("gaussian_noise") {
    World world(PLUGIN);
    const std::string name = "org.example.gaussian_noise";
    const Array zeros = Array::constant({100000}, dtype_of<double>(), 0);
    const Attrs sigma = {set("sigma", 2.0)};

    const Array noise = world.forward(name, {zeros}, sigma)[0];
    double mean = 0;
    double square = 0;
    for (std::int64_t i = 0; i < noise.size(); ++i) {
        mean += noise.at(i) / 1e5;
        square += noise.at(i) * noise.at(i) / 1e5;
    }
    CHECK(std::abs(mean) < 0.03);  // five standard errors
    CHECK(square == doctest::Approx(4).epsilon(0.025));

    CHECK_FALSE(world.forward(name, {zeros}, sigma)[0] == noise);  // new random numbers
    world.drawn = 0;
    CHECK(world.forward(name, {zeros}, sigma, {.threads = 3})[0] == noise);

    const Array x = Array::from<double>({1, 2, 3}, {3});
    CHECK(check(world, {.function = name, .inputs = {x}, .expected = {x}, .train = false}) == "");
    CHECK(conform(world, name).failures() == "");
}
