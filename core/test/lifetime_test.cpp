// Tests of the lifetime of handles, retained arrays and long chains.
#include "toys.hpp"

#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

// The size of the tests' arrays, in bytes. The allocator does not round it up.
constexpr std::int64_t bytes = 1 << 16;
std::int64_t live() { return Device::get("toy:0").memory().in_use / bytes; }
Array big(double value = 1) { return Array::full({bytes / 4}, value); }

}  // namespace

TEST_CASE("only what the call retains stays alive") {
    const std::int64_t before = live();
    const Variable x(big());
    CHECK(live() == before + 1);
    SUBCASE("a function that retains nothing") {
        Variable y = twice.first({&x});
        for (int i = 0; i < 10; ++i) y = twice.first({&y});
        CHECK(live() == before + 2);
        y = Variable();
        CHECK(live() == before + 1);
    }
    SUBCASE("a function that retains its inputs") {
        Variable y = mul.first({&x, &x});
        for (int i = 0; i < 10; ++i) y = mul.first({&y, &y});
        CHECK(live() == before + 12);
        y.unchain_backward();
        CHECK(live() == before + 2);
    }
    SUBCASE("a function that retains its output") {
        Variable y = PluginFunction("toy.reciprocal").first({&x});
        y = twice.first({&y});
        CHECK(live() == before + 3);
        y = Variable();
        CHECK(live() == before + 1);
    }
    SUBCASE("an input that is replaced by the user") {
        const Variable y = mul.first({&x, &x});
        x.set_data(big());
        CHECK(live() == before + 3);
    }
    SUBCASE("nothing without a graph") {
        Variable v(x.data(), true);
        for (int i = 0; i < 10; ++i) v = mul.first({&v, &v});
        CHECK(live() == before + 2);
    }
    SUBCASE("saved tensors and scratch") {
        const Variable y = PluginFunction("toy.gate").first({&x});
        CHECK(live() == before + 3);  // x, y and the saved tensor; the scratch memory was freed
    }
    SUBCASE("views") {
        Variable y =
            PluginFunction("toy.view", {{"shape", std::vector<std::int64_t>{2, bytes / 8}}})
                .first({&x});
        CHECK(live() == before + 1);
        const Array data = y.data();
        y = Variable();
        CHECK(live() == before + 1);
    }
}

TEST_CASE("backward: gradients on their way die as soon as they are used") {
    const std::int64_t before = live();
    const Variable x(big());
    Variable y = twice.first({&x});
    for (int i = 0; i < 20; ++i) y = twice.first({&y});
    y.set_grad(big());
    Device::get("toy:0").release_cached();
    toys::Memory& memory = toys::memory("toy:0");
    memory.limit = memory.live_bytes + 2 * bytes;  // room for an incoming and an outgoing gradient
    y.backward();
    memory.limit = std::int64_t{1} << 40;
    CHECK(live() == before + 4);  // x, x.grad, y, y.grad
    x.cleargrad();
    CHECK(live() == before + 3);
}

TEST_CASE("handles that are gone give back data and gradient; the graph goes on") {
    const std::int64_t before = live();
    Variable y;
    Variable x(big(3));
    {
        const Variable h = twice.first({&x});
        const Variable copy = h;
        h.set_grad(big());
        y = twice.first({&h});
    }
    CHECK(live() == before + 2);
    y.set_grad(big());
    y.backward();
    CHECK(values(x.grad())[0] == 4);
    x = Variable();  // the graph does not need its array
    CHECK(live() == before + 2);
    y.backward();
    y = Variable();
    CHECK(live() == before);
}

TEST_CASE("the gradient's graph dies with the gradient") {
    const std::int64_t before = live();
    {
        const Variable x(big(2));
        const Variable y = mul.first({&x, &x});
        y.set_grad(big());
        y.backward(false, true);
        CHECK(x.grad_variable().creator() != nullptr);
        x.cleargrad();
        CHECK(live() == before + 3);
        y.backward(false, true);
    }
    CHECK(live() == before);
    {
        // The gradient outlives the variable, and keeps the part of the graph that it needs.
        Variable gx;
        {
            const Variable x(big(2));
            const Variable y = PluginFunction("toy.cube").first({&x});
            y.set_grad(big());
            y.backward(false, true);
            gx = x.grad_variable();
        }
        CHECK(values(gx.data())[0] == 12);
        CHECK(gx.requires_grad());
    }
    CHECK(live() == before);
}

TEST_CASE("a chain of a million calls is built, walked and freed without recursion") {
    const Variable x(Array::ones({}));
    {
        Variable y = x;
        for (int i = 0; i < toys::many; ++i) y = add.first({&y, &x});
        CHECK(y.rank() == toys::many);
        y.backward();
        CHECK(x.grad().item<float>() == toys::many + 1);
        const Variable same = y;
        y = Variable();
    }
    {
        Variable y = x;
        for (int i = 0; i < toys::many; ++i) y = twice.first({&y});
        y.unchain_backward();
        CHECK(y.creator() == nullptr);
    }
}

TEST_CASE("a chain of gradients of gradients is freed without recursion") {
    Variable x(Array::ones({}));
    const Variable first = x;
    for (int i = 0; i < 100'000; ++i) {
        Variable next(Array::ones({}));
        next.set_grad(x);
        x = next;
    }
    x = Variable();
    CHECK(first.data().item<float>() == 1);
}

namespace {

// Destroyed after the thread's memory pools are closed.
struct Late {
    Variable variable;
};
Late late;
thread_local Late late_in_thread;

}  // namespace

TEST_CASE("graphs may die with their thread and with the process") {
    for (Late* place : {&late, &late_in_thread}) {
        place->variable = Variable(Array::ones({3}));
        for (int i = 0; i < 1000; ++i) {
            place->variable = mul.first({&place->variable, &place->variable});
        }
    }
    CHECK(late.variable.rank() == 1000);
}

TEST_CASE("no kernel runs for the gradients of leaves whose handles are gone") {
    const Variable x(floats({2}));
    seen("toy.mul").clear();
    Variable product;
    {
        const Variable a(floats({3})), b(floats({4}));
        product = mul.first({&a, &b});
    }
    const Variable y = add.first({&product, &x});
    y.backward();
    CHECK(seen("toy.mul").backward == 0);
    CHECK(values(x.grad()) == Values{1});
}

TEST_CASE("unchain() makes one result of a call a leaf") {
    const Variable x(floats({3}));
    const std::vector<Variable> parts = PluginFunction("toy.split")({&x});
    parts[0].unchain();
    CHECK(parts[0].creator() == nullptr);
    REQUIRE(parts[1].creator() != nullptr);
    CHECK(parts[1].creator()->outputs()[0] == nullptr);
    mul.first({&parts[0], &parts[1]}).backward();
    CHECK(values(parts[0].grad()) == values(parts[1].data()));
    const Values through_the_other = values(x.grad());
    x.cleargrad();
    parts[1].set_grad(parts[0].data());
    parts[1].backward();
    CHECK(values(x.grad()) == through_the_other);
    x.unchain();  // a leaf stays a leaf
    CHECK(x.creator() == nullptr);
}
