// Tests of misused graphs: they raise an error or do no harm, and never give a wrong number.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

TEST_CASE("data of another shape is refused while a graph refers to the variable") {
    const Variable x(floats({1, 2, 3}));
    {
        const Variable y = mul.first({&x, &x});
        CHECK_THROWS_WITH_AS(x.set_data(floats({1})),
                             "[variable] data: expected (3,) float32 on toy:0 while a graph refers "
                             "to it, got (1,) float32 on toy:0",
                             GraphError);
        CHECK_THROWS_AS(y.set_data(floats({1})), GraphError);
        x.set_data(floats({4, 5, 6}));  // the same shape is allowed
    }
    x.set_grad(floats({1, 1, 1}));
    x.set_data(floats({2}));
    CHECK_FALSE(x.grad());  // the gradient of the old shape is dropped
    mul.first({&x, &x}).backward();
    CHECK(values(x.grad()) == Values{4});
}

TEST_CASE("a variable that the graph alone remembers has a shape but no data") {
    const Variable x(floats({1, 2}));
    Variable y = PluginFunction("toy.twice").first({&x});
    const Variable z = PluginFunction("toy.twice").first({&y});
    y = Variable();
    const Variable ghost(z.creator()->inputs()[0]);
    CHECK(ghost.shape() == Shape{2});
    CHECK_THROWS_AS((void)ghost.data().to_vector<float>(), GraphError);
    CHECK_THROWS_AS((void)mul.first({&ghost, &x}), GraphError);
}

TEST_CASE("zerograd leaves a gradient's own graph alone") {
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    y.backward(false, true);
    const Variable g = x.grad_variable();  // 2x
    const Variable penalty = mul.first({&g, &g});
    x.zerograd();
    penalty.backward();
    CHECK(values(x.grad()) == Values{24});  // d(4x^2)/dx
}

TEST_CASE("writing into a retained array is noticed") {
    const Variable x(floats({2}));
    const Variable y = mul.first({&x, &x});
    x.data().fill(5);
    CHECK_THROWS_WITH_AS(
        y.backward(),
        "[toy.mul] backward: expected a unmodified since the call, got one that was "
        "changed in place; host<T>() counts as a change unless T is const",
        GraphError);
    const Variable w(floats({2}));
    const Variable v = mul.first({&w, &w});
    w.data().reshape({1, 1}).copy_from(Array::ones({1, 1}));  // also through a view
    CHECK_THROWS_AS(v.backward(), GraphError);
}

TEST_CASE("a leaf that nobody holds costs no gradient") {
    const Variable x(floats({2}));
    const Variable y = [&] {
        const Variable unnamed(floats({3}));
        return mul.first({&x, &unnamed});
    }();
    toys::seen("toy.mul").clear();
    y.backward();
    CHECK(toys::seen("toy.mul").targets == 1);
    CHECK(values(x.grad()) == Values{3});
}

TEST_CASE("sizes that vary do not fill the cache without end") {
    const Device device = Device::current();
    device.release_cached();
    for (std::int64_t i = 1; i <= 60; ++i) (void)Array::empty({i * 400'000});
    const MemoryStats stats = device.memory();
    CHECK(stats.cached <= 2 * stats.peak + (std::int64_t{64} << 20));
}

TEST_CASE("an empty device handle is an error") {
    CHECK_THROWS_AS((void)Device().name(), InvalidError);
}

TEST_CASE("backward() from a leaf sets its gradient, and is an error where there is none") {
    const Variable x(floats({3}));
    x.backward();
    x.backward();
    CHECK(values(x.grad()) == Values{1});  // it starts with its gradient
    x.cleargrad();
    std::move(Variable(x)).backward(false, true);
    CHECK(values(x.grad()) == Values{1});
    CHECK_THROWS_AS(Variable(floats({3, 4})).backward(), GraphError);

    const char* said =
        "[backward] start: expected a variable that requires a gradient, or the result of calls on "
        "one, got one with neither: as_variable() or no_backprop_mode made it, or no input of its "
        "call requires a gradient";
    const Variable constant = as_variable(floats({3}));
    CHECK_THROWS_WITH_AS(constant.backward(), said, GraphError);
    CHECK_THROWS_WITH_AS(as_variable(floats({3})).backward(), said, GraphError);  // the && overload
    CHECK_THROWS_WITH_AS(mul.first({&constant, &constant}).backward(), said, GraphError);
    CHECK_FALSE(constant.grad());
    const Variable unrecorded = [&] {
        const no_backprop_mode scope;
        return mul.first({&x, &x});
    }();
    CHECK_THROWS_WITH_AS(unrecorded.backward(), said, GraphError);
    CHECK_THROWS_AS(mul.first({&constant, &constant}).backward(), GraphError);
}
