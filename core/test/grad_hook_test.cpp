// Tests of hooks that backward() calls when the gradient of a leaf is complete, and of KeepVersions.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

// Leaves whose hooks note their name and their gradient.
struct Noted {
    std::vector<std::pair<std::string, Values>> calls;
    void watch(const Variable& leaf, const std::string& name) {
        leaf.set_grad_hook(
            [this, name, node = &leaf.node()] { calls.emplace_back(name, values(node->grad)); });
    }
    std::string names() const {
        std::string all;
        for (const auto& call : calls) all += call.first;
        return all;
    }
};

}  // namespace

TEST_CASE("a hook is called once, when the gradient has all its terms") {
    const Variable a(floats({2})), b(floats({3})), c(floats({5}));
    Noted noted;
    noted.watch(a, "a");
    noted.watch(b, "b");
    noted.watch(c, "c");
    const Variable d = mul.first({&a, &b});  // first: a is used here ...
    const Variable e = mul.first({&d, &c});
    const Variable f = add.first({&e, &a});  // ... and here
    f.backward();
    CHECK(noted.names() == "cab");
    CHECK(noted.calls[0].second == Values{6});
    CHECK(noted.calls[1].second == Values{16});
    CHECK(noted.calls[2].second == Values{10});
    f.backward();  // the gradients are added
    CHECK(noted.names() == "cabcab");
    CHECK(noted.calls[4].second == Values{32});
}

TEST_CASE("hooks see inputs that a call has twice, several outputs, and consumed graphs") {
    const Variable a(floats({3}));
    Noted noted;
    noted.watch(a, "a");
    mul.first({&a, &a}).backward();
    CHECK(noted.names() == "a");
    CHECK(noted.calls[0].second == Values{6});
    a.cleargrad();
    Variable loss = mul.first({&a, &a});
    std::move(loss).backward();
    CHECK(noted.names() == "aa");
    a.cleargrad();
    backward({mul.first({&a, &a}), add.first({&a, &a})});
    CHECK(noted.names() == "aaa");
    CHECK(noted.calls[2].second == Values{8});
    a.cleargrad();
    mul.first({&a, &a}).backward(false, true);  // gradients with a graph
    CHECK(noted.names() == "aaaa");
}

TEST_CASE("leaves that get no gradient call no hook, and neither does grad()") {
    const Variable a(floats({3})), b(floats({4})), unused(floats({1}));
    Noted noted;
    noted.watch(a, "a");
    noted.watch(b, "b");
    noted.watch(unused, "u");
    b.set_requires_grad(false);
    const Variable y = mul.first({&a, &b});
    (void)grad({y}, {a});
    CHECK(noted.calls.empty());
    y.backward();
    CHECK(noted.names() == "a");
    a.set_grad_hook({});
    y.backward();
    CHECK(noted.names() == "a");
    CHECK(values(a.grad()) == Values{8});
}

TEST_CASE("an exception of a hook ends backward()") {
    const Variable a(floats({3}));
    a.set_grad_hook([] { throw InvalidError("[hook] expected this"); });
    const Variable y = mul.first({&a, &a});
    CHECK_THROWS_WITH_AS(y.backward(), "[hook] expected this", InvalidError);
    a.set_grad_hook({});
    a.cleargrad();
    y.backward();
    CHECK(values(a.grad()) == Values{6});
}

TEST_CASE("KeepVersions: after writes in its scope, the gradient is that with the new values") {
    const Variable x(floats({2})), y(floats({3}));
    const Variable z = mul.first({&x, &y});
    {
        const Array written[] = {y.data().reshape({1, 1}), x.data()};
        const KeepVersions kept(written);
        for (const Array& each : written) each.host<float>()[0] = 5;
    }
    z.backward();
    CHECK(values(x.grad()) == Values{5});
    const Variable w = mul.first({&x, &y});
    y.data().host<float>()[0] = 7;
    CHECK_THROWS_AS(w.backward(), GraphError);
}
