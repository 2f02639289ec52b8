// The example plugins: the same function from C++ and from C.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cstdlib>

using namespace catena::testing;

TEST_CASE("mul_add in C++: every kernel, gradient and request") {
    World world({MUL_ADD, MATH_PLUGIN, ARRAY_PLUGIN});
    const Array x = Array::random<double>({3, 4}, 1);
    for (const Dims& shape : {Dims{3, 4}, Dims{4}, Dims{3, 1}, Dims{}}) {
        const std::vector<Array> inputs = {x, Array::random<double>(shape, 2),
                                           Array::random<double>({3, 4}, 3)};
        CHECK(check(world, {"org.example.mul_add", inputs}) == "");
        const Array w = world.forward("org.example.mul_add", inputs)[0];
        for (std::int64_t i = 0; i < 12; ++i) {
            const std::int64_t k = shape == Dims{4}      ? i % 4
                                   : shape == Dims{3, 1} ? i / 4
                                   : shape.empty()       ? 0
                                                         : i;
            CHECK(w.at(i) == doctest::Approx(inputs[0].at(i) * inputs[1].at(k) + inputs[2].at(i)));
        }
    }
}

TEST_CASE("what a gradient is composed of is loaded where it is needed, or missed by name") {
    World world(MUL_ADD);
    const Array x = Array::random<double>({3}, 1);
    const auto gradient = [&] {
        return world.gradient("org.example.mul_add", {x, x, x}, {x}, {x});
    };
    setenv("CATENA_TESTING_PLUGINS", "", 1);
    CHECK_THROWS_WITH(gradient(),
                      "[world] catena.mul: expected a function of the loaded plugins, got none; "
                      "CATENA_TESTING_PLUGINS names the folder of catena's own");
    setenv("CATENA_TESTING_PLUGINS", "/nowhere", 1);
    CHECK_THROWS_WITH(gradient(),
                      "[world] catena.mul: expected a function of the loaded plugins or of those "
                      "in /nowhere, got none");
    unsetenv("CATENA_TESTING_PLUGINS");
    CHECK(gradient().size() == 3);
    CHECK(world.names() == std::vector<std::string>{"org.example.mul_add"});
}

TEST_CASE("swish: an attribute in the formula") {
    World world({SWISH, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    const Array x = Array::random<double>({2, 70}, 1, -4, 4);
    CHECK(check(world, {"org.example.swish", {x}}) == "");
    CHECK(check(world, {"org.example.swish", {x}, {set("beta", 0.5)}}) == "");
}

TEST_CASE("Options::add: to floats alone, integers are written") {
    World world({MATH_PLUGIN, ARRAY_PLUGIN});
    Options options;
    options.add = true;
    const auto sum = [&](const auto& a, const auto& b) {
        return world.forward("catena.add", {a, b}, {}, options)[0];
    };
    CHECK(sum(Array::from<float>({1, 2}, {2}), Array::from<float>({3, 4}, {2})) ==
          Array::from<float>({5, 7}, {2}));
    CHECK(sum(Array::from<std::int32_t>({1, 2}, {2}), Array::from<std::int32_t>({3, 4}, {2})) ==
          Array::from<std::int32_t>({4, 6}, {2}));
}

TEST_CASE("check() notices a wrong gradient") {
    World world({WRONG, MATH_PLUGIN, ARRAY_PLUGIN});
    const std::string problems =
        check(world, {"org.example.wrong", {Array::random<double>({3}, 1, 0.5, 1)}});
    CHECK(problems.find("gradient: of x") != std::string::npos);
}

#if defined(MUL_ADD_CUDA)
TEST_CASE("mul_add for CUDA: its table (the kernels need a GPU)") {
    World world({MUL_ADD, MUL_ADD_CUDA});
    std::size_t kernels = 0;
    for (const catena_kernel* k : world.kernels())
        if (std::string(k->device) == "cuda") {
            CHECK(std::string(k->function) == "org.example.mul_add");
            CHECK((k->run != nullptr));
            ++kernels;
        }
    CHECK(kernels == 8);  // forward and backward, for four dtypes
}
#endif

TEST_CASE("mul_add in C") {
    World world({MUL_ADD, MUL_ADD_C});
    const std::vector<Array> inputs = {Array::random<float>({5, 3}, 1),
                                       Array::random<float>({5, 3}, 2),
                                       Array::random<float>({5, 3}, 3)};
    const auto w = world.forward("org.example.c.mul_add", inputs);
    CHECK(compare(w[0], world.forward("org.example.mul_add", inputs)[0], {1e-6, 1e-6}) == "");
    const Array gw = Array::random<float>({5, 3}, 4);
    const auto gx = world.backward("org.example.c.mul_add", inputs, w, {gw});
    const auto expected = world.backward("org.example.mul_add", inputs, w, {gw});
    for (std::size_t i = 0; i < 3; ++i) CHECK(compare(gx[i], expected[i], {1e-6, 1e-6}) == "");
    CHECK_THROWS_WITH(world.forward("org.example.c.mul_add",
                                    {inputs[0], inputs[1], Array::random<float>({3}, 1)}),
                      "[org.example.c.mul_add] x, y, z: expected equal shapes, got different ones");
}

TEST_CASE("a case: inputs, how to call, what is expected, or the error") {
    World world(SWISH);
    const Array x = Array::from<double>({-1, 0, 1, 2}, {2, 2});
    const auto say = [&](const Case& c) { return check(world, c); };
    CHECK(say({.function = "org.example.swish",
               .inputs = {x},
               .attrs = {{"beta", value_of(2.0)}},
               .expected = {Array::from<double>({-0.119202922022, 0, 0.880797077978, 1.96402758008},
                                                {2, 2})}}) == "");
    CHECK(say({.function = "org.example.swish",
               .inputs = {x},
               .attrs = {set("gamma", 2.0)},
               .error = "[org.example.swish] attribute 'gamma': expected one of beta"}) == "");
    CHECK(say({.function = "org.example.swish",
               .inputs = {x},
               .expected = {Array::from<double>({0, 0, 0.5, 0}, {2, 2})}}) ==
          "org.example.swish: example: x=(2,2): y: element 0: expected 0, got -0.268941421\n");
    CHECK(say({.function = "org.example.swish",
               .inputs = {x},
               .expected = {Array::from<double>({0, 0, 0, 0}, {4})}}) ==
          "org.example.swish: example: x=(2,2): y: shape: expected (4,), got (2, 2)\n");
    CHECK(say({.function = "org.example.swish", .inputs = {x}, .expected = {Array(), x}}) ==
          "org.example.swish: example: x=(2,2): expected 2 outputs, got 1\n");
    CHECK(say({.function = "org.example.swish",
               .inputs = {x},
               .attrs = {set("beta", "two")},
               .error = "[org.example.swish] attribute 'beta': expected a dtype"}) ==
          "org.example.swish: example: expected the error \"[org.example.swish] attribute 'beta': "
          "expected a dtype\", got \"[org.example.swish] attribute 'beta': expected a number, got "
          "'two'\"\n");
    CHECK(say({.function = "org.example.swish", .inputs = {x}, .error = "too much"}) ==
          "org.example.swish: example: expected the error \"too much\", got none\n");
    CHECK(say({.function = "org.example.swich", .inputs = {x}})
              .find("(did you mean org.example.swish?)") != std::string::npos);
}
