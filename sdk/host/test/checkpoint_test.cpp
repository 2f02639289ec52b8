// Tests of F::checkpoint(): gradients, parameters, random numbers, statistics, memory.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

using namespace catena;
namespace F = catena::functions;

namespace {

struct Block : Chain {
    links::Linear l1{8, 32}, l2{32, 8};
    links::BatchNormalization norm{8};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("norm", norm); }
    Variable operator()(const Variable& x) const override {
        return norm(l2(F::dropout(F::relu(l1(x)), 0.5)));
    }
};

std::vector<std::vector<double>> gradients(Block& net, const Variable& x, bool checkpoint) {
    net.cleargrads();
    x.cleargrad();
    seed(3);
    const auto call = [&](const Variable& v) { return net(v); };
    const Variable y = checkpoint ? F::checkpoint(call, x) : call(x);
    F::sum(y * y * y).backward();
    std::vector<std::vector<double>> all{y.data().to_vector<double>()};
    for (const Variable& p : net.parameters()) all.push_back(p.grad().to_vector<double>());
    if (x.grad()) all.push_back(x.grad().to_vector<double>());
    return all;
}

}  // namespace

TEST_CASE("values and gradients are those of the call; statistics are updated once") {
    Block net;
    Block plain = deep_copy(net);
    for (const bool wanted : {true, false}) {
        Variable x(F::normal({16, 8}));
        x.set_requires_grad(wanted);
        CHECK(gradients(net, x, true) == gradients(plain, x, false));
        CHECK(net.norm.avg_mean.to_vector<double>() == plain.norm.avg_mean.to_vector<double>());
    }
    CHECK(!in_recomputation());
}

TEST_CASE("several inputs and outputs, nested checkpoints, missing gradients") {
    const Variable a(F::normal({3}, 0, 1, Dtype::float64)), b(F::normal({3}, 0, 1, Dtype::float64));
    const auto inner = [](const Variables& v) -> Variables {
        const Variable noise = F::dropout(v[0], 0.5);
        return {noise * v[1], F::exp(v[1]), v[0] + 1};
    };
    const auto outer = [&](const Variables& v) -> Variables {
        Variables y = F::checkpoint(inner, {v[0] * 2, v[1]});
        y[0] = F::dropout(y[0], 0.25);
        return y;
    };
    seed(1);
    Variables y = F::checkpoint(outer, {a, b});
    (F::sum(y[0]) + F::sum(y[1])).backward();
    const auto ga = a.grad().to_vector<double>(), gb = b.grad().to_vector<double>();
    a.cleargrad();
    b.cleargrad();
    seed(1);
    const Variable noise = F::dropout(a * 2, 0.5);
    (F::sum(F::dropout(noise * b, 0.25)) + F::sum(F::exp(b))).backward();
    CHECK(ga == a.grad().to_vector<double>());
    CHECK(gb == b.grad().to_vector<double>());
}

TEST_CASE("the arrays in between are not kept") {
    const auto held = [&](bool checkpoint) {
        const Variable x(Array::ones({1 << 16}));
        const auto call = [](const Variable& v) {
            Variable y = v;
            for (int i = 0; i < 16; ++i) y = F::sin(y);
            return y;
        };
        const auto before = Device::current().memory().in_use;
        const Variable y = checkpoint ? F::checkpoint(call, x) : call(x);
        return static_cast<double>(Device::current().memory().in_use - before) / (4 << 16);
    };
    CHECK(held(false) > 14);
    CHECK(held(true) < 2.5);
}

TEST_CASE("what cannot be done is an error") {
    const Variable x(Array::ones({2}));
    CHECK_THROWS_AS(F::checkpoint({}, VariableList{x}), InvalidError);
    const Variable y = F::checkpoint([](const Variable& v) { return F::exp(v); }, x);
    CHECK_THROWS_AS(F::sum(y).backward(false, true), UnsupportedError);
    int calls = 0;
    const Variable z = F::checkpoint(
        [&](const Variable& v) {
            return ++calls == 1 ? v * 2 : F::dropout(F::dropout(v, 0.5), 0.5);
        },
        x);
    CHECK_THROWS_AS(F::sum(z).backward(), InvalidError);  // draws more than in the first call
}
