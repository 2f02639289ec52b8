// Tests of backpropagation: gradients of each variable, order of calls, state after the pass.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

Variable scaled(const Variable& x, double factor) {
    return PluginFunction("toy.scale", {{"factor", factor}}).first({&x});
}

}  // namespace

TEST_CASE("a leaf has neither creator nor gradient, a result has a creator") {
    const Variable x(floats({1, 2}));
    CHECK(x.creator() == nullptr);
    CHECK(x.rank() == 0);
    CHECK_FALSE(x.grad());
    CHECK_FALSE(x.grad_variable());
    const Variable y = mul.first({&x, &x});
    REQUIRE(y.creator());
    CHECK(y.creator()->label() == "toy.mul");
    CHECK(y.creator()->inputs().size() == 2);
    CHECK(y.creator()->outputs()[0] == &y.node());
    CHECK(y.rank() == 1);
    const Variable z = add.first({&y, &x});
    CHECK(z.rank() == 2);
    CHECK(values(z.data()) == Values{2, 6});
}

TEST_CASE("a start of one element begins with 1, another needs a gradient") {
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    y.backward();
    CHECK(values(x.grad()) == Values{6});
    CHECK(values(y.grad()) == Values{1});
    const Variable wide(floats({1, 2}));
    const Variable z = mul.first({&wide, &wide});
    CHECK_THROWS_WITH_AS(z.backward(),
                         "[backward] grad of the start: expected one to be set for shape (2,), got "
                         "none (only a variable of one element starts with 1)",
                         GraphError);
    CHECK_FALSE(wide.grad());
    z.set_grad(floats({10, 100}));
    z.backward();
    CHECK(values(wide.grad()) == Values{20, 400});
    CHECK(values(z.grad()) == Values{10, 100});
}

TEST_CASE("a variable used twice gets both gradients") {
    const Variable x(floats({3}));
    const Variable y = add.first({&x, &x});
    y.backward();
    CHECK(values(x.grad()) == Values{2});
    const Variable w(floats({3}));
    const Variable square = mul.first({&w, &w});
    const Variable z = mul.first({&square, &w});
    z.backward();
    CHECK(values(w.grad()) == Values{27});
}

TEST_CASE("a leaf's gradient accumulates over calls, in the same memory") {
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    y.backward();
    const void* memory = x.grad().host<float>().data();
    y.backward();
    CHECK(values(x.grad()) == Values{12});
    const Variable z = twice.first({&x});  // its kernel cannot add, so the core adds
    z.backward();
    CHECK(values(x.grad()) == Values{14});
    scaled(x, 5).backward();  // composed gradient
    CHECK(values(x.grad()) == Values{19});
    CHECK(x.grad().host<float>().data() == memory);
    x.zerograd();
    CHECK(values(x.grad()) == Values{0});
    CHECK(x.grad().host<float>().data() == memory);
    z.backward();
    CHECK(values(x.grad()) == Values{2});
    x.cleargrad();
    CHECK_FALSE(x.grad());
    z.backward();
    CHECK(values(x.grad()) == Values{2});
}

TEST_CASE("a diamond: each call runs once, after all that use its result") {
    const Variable x(floats({2}));
    const Variable m = mul.first({&x, &x});    // 4
    const Variable a = twice.first({&m});      // 8
    const Variable b = scaled(m, 3);           // 12
    const Variable top = mul.first({&a, &b});  // 96 = 6 m^2 = 6 x^4
    seen("toy.mul").clear();
    top.backward();
    CHECK(values(top.data()) == Values{96});
    CHECK(values(x.grad()) == Values{24 * 8});
    CHECK(seen("toy.mul").backward == 2);
    const Variable skip = add.first({&top, &x});  // a long and a short path
    x.cleargrad();
    skip.backward();
    CHECK(values(x.grad()) == Values{24 * 8 + 1});
}

TEST_CASE("gradients of results are dropped unless retained") {
    const Variable x(floats({2}));
    const Variable h = mul.first({&x, &x});
    const Variable y = twice.first({&h});
    y.backward();
    CHECK_FALSE(h.grad());
    y.backward(true);
    CHECK(values(h.grad()) == Values{2});
    CHECK(values(x.grad()) == Values{16});
    y.backward(true);  // replaces h.grad instead of adding to it
    CHECK(values(h.grad()) == Values{2});
    CHECK(values(x.grad()) == Values{24});
}

TEST_CASE("a retained gradient does not change when the pass goes on") {
    const Variable x(floats({2}));
    const Variable h = scaled(x, 1);
    const Variable a = add.first({&h, &h});
    const Variable y = add.first({&a, &h});
    y.backward(true);
    CHECK(values(a.grad()) == Values{1});
    CHECK(values(h.grad()) == Values{3});
    CHECK(values(x.grad()) == Values{3});
    CHECK(values(y.grad()) == Values{1});
}

TEST_CASE("no gradient for the gradient of a result whose handle is gone") {
    const Variable x(floats({2}));
    VariableNode* node = nullptr;
    Variable y;
    {
        const Variable h = mul.first({&x, &x});
        const Variable other = h;
        node = &h.node();
        y = twice.first({&h});
        CHECK(node->has_users());
    }
    CHECK_FALSE(node->has_users());
    y.backward(true);
    CHECK_FALSE(node->grad);
    CHECK(values(x.grad()) == Values{8});
}

TEST_CASE("branches that lead nowhere do not matter") {
    const Variable x(floats({2}));
    const Variable used = mul.first({&x, &x});
    const Variable dead = twice.first({&used});
    const Variable y = scaled(used, 3);
    y.backward();
    CHECK(values(x.grad()) == Values{12});
    CHECK_FALSE(dead.grad());
}

TEST_CASE("two heads: gradients add up") {
    const Variable x(floats({2}));
    const Variable h = mul.first({&x, &x});
    const Variable y = twice.first({&h});
    const Variable z = scaled(h, 3);
    y.backward();
    z.backward();
    CHECK(values(x.grad()) == Values{8 + 12});
}

TEST_CASE("what wants no gradient costs none") {
    const Variable x(floats({2}));
    const Variable w = as_variable(floats({5}));
    CHECK_FALSE(w.requires_grad());
    seen("toy.mul").clear();
    const Variable y = mul.first({&x, &w});
    CHECK(y.requires_grad());
    y.backward();
    CHECK(seen("toy.mul").targets == 1);
    CHECK(values(x.grad()) == Values{5});
    CHECK_FALSE(w.grad());
    const Variable constant = mul.first({&w, &w});
    CHECK_FALSE(constant.requires_grad());
    CHECK(constant.creator() == nullptr);
    CHECK_FALSE(Variable(Array::zeros({1}, Dtype::int64)).requires_grad());
}

TEST_CASE("outputs without a gradient reach the kernel as none") {
    const Variable x(floats({1}));
    auto parts = PluginFunction("toy.split")({&x});
    REQUIRE(parts.size() == 2);
    parts[0].backward();
    CHECK(values(x.grad()) == Values{2});
    x.cleargrad();
    parts[1].backward();
    CHECK(values(x.grad()) == Values{3});
    x.cleargrad();
    const Variable both = mul.first({&parts[0], &parts[1]});  // 6 x^2
    parts[0].cleargrad();
    parts[1].cleargrad();
    parts.clear();
    both.backward();
    CHECK(values(x.grad()) == Values{12});
}

TEST_CASE("a start with a sister: her gradient of another pass is not used") {
    const Variable x(floats({1}));
    const auto parts = PluginFunction("toy.split")({&x});
    const Variable b = twice.first({&parts[1]});
    b.backward(true);
    CHECK(values(parts[1].grad()) == Values{2});
    x.cleargrad();
    parts[0].backward();
    CHECK(values(x.grad()) == Values{2});
}

TEST_CASE("variadic inputs, optional inputs, integer inputs") {
    const Variable a(floats({1})), b(floats({2})), c(floats({4}));
    const Variable total = PluginFunction("toy.total").first({&a, &b, &c, &a});
    CHECK(values(total.data()) == Values{8});
    total.backward();
    CHECK(seen("toy.total").targets == 15);
    CHECK(values(a.grad()) == Values{2});
    CHECK(values(b.grad()) == Values{1});
    CHECK(values(c.grad()) == Values{1});

    const PluginFunction affine("toy.affine");
    const Variable none;
    for (const Variable& without :
         {affine.first({&b, &c}), affine.first({&b, &c, &none}), affine.first({&b, &c, nullptr})}) {
        CHECK(values(without.data()) == Values{8});
        b.cleargrad();
        without.backward();
        CHECK(values(b.grad()) == Values{4});
    }
    const Variable with = affine.first({&b, &c, &a});
    CHECK(values(with.data()) == Values{9});
    a.cleargrad();
    with.backward();
    CHECK(values(a.grad()) == Values{1});

    const Variable t(Array::from<std::int32_t>({7}, {1}));
    const Variable weighed = PluginFunction("toy.weigh").first({&b, &t});
    b.cleargrad();
    weighed.backward();
    CHECK(values(b.grad()) == Values{7});
    CHECK_FALSE(t.grad());
}

TEST_CASE("many variadic inputs: targets beyond 64") {
    std::vector<Variable> leaves;
    std::vector<const Variable*> pointers;
    for (int i = 0; i < 150; ++i) leaves.emplace_back(doubles({1}));
    leaves[70].set_requires_grad(false);
    for (const Variable& leaf : leaves) pointers.push_back(&leaf);
    const Variable y = PluginFunction("toy.total").first(pointers);
    CHECK(values(y.data()) == Values{150});
    y.backward();
    for (int i = 0; i < 150; ++i) {
        CHECK(static_cast<bool>(leaves[static_cast<std::size_t>(i)].grad()) == (i != 70));
    }
    CHECK(values(leaves[149].grad()) == Values{1});
}

TEST_CASE("an integer output carries no gradient") {
    const Variable x(floats({1, 9, 3}));
    const auto y = PluginFunction("toy.largest")({&x});
    CHECK(values(y[0].data()) == Values{9});
    CHECK(y[1].data().to_vector<std::int64_t>() == std::vector<std::int64_t>{1});
    CHECK_FALSE(y[1].requires_grad());
    y[0].backward();
    CHECK(values(x.grad()) == Values{0, 1, 0});
    CHECK_THROWS_WITH_AS(y[1].backward(), "[backward] start: expected a floating dtype, got int64",
                         DtypeError);
}

TEST_CASE("views share memory forward, and their gradients do no harm") {
    const Variable x(Array::from<float>({1, 2, 3, 4}, {2, 2}));
    const Variable flat =
        PluginFunction("toy.view", {{"shape", std::vector<std::int64_t>{4}}}).first({&x});
    CHECK(flat.data().host<float>().data() == x.data().host<float>().data());
    const Variable y = sum.first({&flat});
    y.backward();
    CHECK(x.grad().shape() == Shape{2, 2});
    CHECK(values(x.grad()) == Values{1, 1, 1, 1});
    y.backward();
    CHECK(values(x.grad()) == Values{2, 2, 2, 2});
    flat.set_grad(floats({1, 2, 3, 4}));
    x.cleargrad();
    flat.backward();
    CHECK(values(x.grad()) == Values{1, 2, 3, 4});
    CHECK(x.grad().host<float>().data() != flat.grad().host<float>().data());
    flat.backward();
    CHECK(values(x.grad()) == Values{2, 4, 6, 8});
    CHECK(values(flat.grad()) == Values{1, 2, 3, 4});
}

TEST_CASE("a gradient handed through is not shared between leaves") {
    const Variable a(floats({1})), b(floats({1}));
    const Variable y = add.first({&a, &b});
    y.backward();
    CHECK(a.grad().host<float>().data() != b.grad().host<float>().data());
    const Variable z = twice.first({&a});
    z.backward();
    CHECK(values(a.grad()) == Values{3});
    CHECK(values(b.grad()) == Values{1});
    CHECK(values(y.grad()) == Values{1});
}

TEST_CASE("a gradient set by hand: used, checked, and not overwritten through another's eyes") {
    const Variable x(floats({1, 2}));
    CHECK_THROWS_WITH_AS(x.set_grad(floats({1})), "[variable] grad: expected shape (2,), got (1,)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(x.set_grad(doubles({1, 2})),
                         "[variable] grad: expected float32, got float64", DtypeError);
    CHECK_THROWS_WITH_AS(x.set_grad(floats({1, 2}).to(Device::get("toy:1"))),
                         "[variable] grad: expected toy:0, got toy:1", DeviceError);
    x.set_grad(floats({10, 20}));
    const Variable y = mul.first({&x, &x});
    y.set_grad(x.grad());  // the same array as the initial and the accumulated gradient
    y.backward();
    CHECK(values(x.grad()) == Values{10 + 20, 20 + 80});
    x.set_grad(Array());
    CHECK_FALSE(x.grad());
}

TEST_CASE("add requests: into the leaf's gradient, and into one on its way") {
    const Variable x(floats({2}));
    const Variable h = scaled(x, 1);
    const Variable a = mul.first({&h, &x});
    const Variable b = mul.first({&h, &x});
    const Variable y = add.first({&a, &b});  // 2 x^2
    seen("toy.mul").clear();
    y.backward();
    CHECK(values(x.grad()) == Values{8});
    CHECK(seen("toy.mul").adds == 2);
    seen("toy.mul").clear();
    y.backward();
    CHECK(values(x.grad()) == Values{16});
    CHECK(seen("toy.mul").adds == 3);
    const Variable square = mul.first({&x, &x});  // both gradients go to x: one kernel call may add
    seen("toy.mul").clear();
    square.backward();
    CHECK(values(x.grad()) == Values{20});
    CHECK(seen("toy.mul").adds == 1);
}

TEST_CASE("unchain in the middle") {
    const Variable x(floats({2}));
    const Variable h = mul.first({&x, &x});
    const Variable y = twice.first({&h});
    const Variable z = scaled(y, 3);
    CHECK(h.rank() == 1);
    h.unchain_backward();
    CHECK(h.creator() == nullptr);
    CHECK(y.creator() != nullptr);
    z.backward();
    CHECK_FALSE(x.grad());
    CHECK(values(h.grad()) == Values{6});  // h is a leaf now
    CHECK(values(h.data()) == Values{4});
    z.unchain_backward();
    CHECK(y.creator() == nullptr);
    CHECK(z.creator() == nullptr);
    const char* freed =
        "[backward] start: expected a variable with its graph, got one whose graph "
        "unchain_backward() has freed";
    CHECK_THROWS_WITH_AS(z.backward(), freed, GraphError);
    CHECK_THROWS_WITH_AS(h.backward(), freed, GraphError);
    CHECK_THROWS_WITH_AS(catena::backward({z}), freed, GraphError);
    CHECK(values(h.grad()) == Values{6});
    twice.first({&h}).backward();  // later results of h record a graph of their own
    CHECK(values(h.grad()) == Values{8});
}

TEST_CASE("what the host writes after the call is an error in backward; what it reads is not") {
    const Variable x(floats({2})), y(floats({3}));
    const auto product = [&] { return mul.first({&x, &y}); };
    Variable z = product();
    CHECK(x.data().host<const float>()[0] == 2);
    z.backward();
    CHECK(values(x.grad()) == Values{3});
    const char* said =
        "[toy.mul] backward: expected a unmodified since the call, got one that was changed in "
        "place; host<T>() counts as a change unless T is const";
    SUBCASE("by its own handle") { x.data().host<float>()[0] = 14; }
    SUBCASE("by a copy of it") {
        const Array copy = x.data();
        copy.host<float>()[0] = 14;
    }
    SUBCASE("by a view") {
        const Array view = x.data().reshape({1, 1});
        view.host<float>()[0] = 14;
    }
    CHECK_THROWS_WITH_AS(z.backward(), said, GraphError);
    CHECK_THROWS_WITH_AS(z.backward(false, true), said, GraphError);
    x.cleargrad();
    product().backward();
    CHECK(values(x.grad()) == Values{3});
}

TEST_CASE("a bool array beside numbers counts as 0 and 1 in their dtype") {
    const Variable x(Array::from<double>({2, 3}, {2}));
    const Array mask = Array::from<bool>({true, false}, {2});
    for (const bool first : {true, false}) {
        x.cleargrad();
        const Variable m = as_variable(mask);
        const Variable y = first ? mul.first({&m, &x}) : mul.first({&x, &m});
        CHECK(y.dtype() == Dtype::float64);
        CHECK(values(y.data()) == Values{2, 0});
        y.set_grad(Array::from<double>({1, 1}, {2}));
        y.backward();
        CHECK(values(x.grad()) == Values{1, 0});
        CHECK_FALSE(m.grad());
        CHECK(mul.forward(first ? std::vector{mask, x.data()} : std::vector{x.data(), mask})[0]
                  .dtype() == Dtype::float64);
    }
    const Variable v(x.data(), true), m(mask, true);
    CHECK(mul.first({&v, &m}).is_volatile());
    CHECK(mask.dtype() == Dtype::bool8);
    CHECK_THROWS_AS((void)mul.forward(std::vector{mask, mask}), DtypeError);
    CHECK_THROWS_AS((void)mul.forward(std::vector{mask, x.data(), floats({1})}), InvalidError);
    const Array other = floats({1, 2});  // only bool is converted
    CHECK_THROWS_AS((void)mul.forward(std::vector{other, x.data()}), DtypeError);
}

TEST_CASE("unchaining through a creator that only its output holds") {
    const Variable x(floats({2}));
    const Variable y = mul.first({&x, &x});
    y.creator()->unchain();
    CHECK(y.creator() == nullptr);
    CHECK(values(y.data()) == Values{4});
}

TEST_CASE("unchaining a wide lattice visits each call once") {
    Variable a(floats({1})), b(floats({1}));
    for (int i = 0; i < 200; ++i) {
        const Variable next = add.first({&a, &b});
        b = add.first({&b, &a});
        a = next;
    }
    a.unchain_backward();
    CHECK(a.creator() == nullptr);
}

TEST_CASE("volatile: no graph, and no mixing") {
    const Variable x(floats({2}), true);
    const Variable y = mul.first({&x, &x});
    CHECK(y.is_volatile());
    CHECK(y.creator() == nullptr);
    CHECK_THROWS_AS(y.backward(), GraphError);
    CHECK_FALSE(x.grad());
    const Variable w(floats({3}));
    CHECK_THROWS_WITH_AS(
        mul.first({&x, &w}),
        "[toy.mul] b: expected a volatile variable as another input is, or a Parameter (what a "
        "link learns, named in its visit()), got neither",
        GraphError);
    CHECK_THROWS_AS(mul.first({&w, &x}), GraphError);
    // A feature extractor: volatile up to y, trained from y on.
    y.set_volatile(false);
    const Variable z = mul.first({&y, &w});
    z.backward();
    CHECK(values(w.grad()) == Values{4});
}

TEST_CASE("a volatile result that is volatile no more is a leaf that takes a gradient") {
    const auto result = [](const Variable& x) { return mul.first({&x, &x}); };
    const Variable x(floats({2}), true);
    const Variable feat = result(x);
    CHECK_FALSE(feat.requires_grad());
    feat.set_volatile(false);
    CHECK(feat.requires_grad());
    CHECK(feat.creator() == nullptr);
    result(feat).backward();  // no other input requires a gradient
    CHECK(values(feat.grad()) == Values{8});
    CHECK_FALSE(x.grad());

    const Variable frozen = result(x);
    frozen.set_requires_grad(false);
    frozen.set_volatile(false);
    CHECK_FALSE(frozen.requires_grad());
    const Variable data = as_variable(floats({3}));  // a leaf keeps its requires_grad
    data.set_volatile(true);
    const Variable of_data = result(data);
    data.set_volatile(false);
    CHECK_FALSE(data.requires_grad());
    of_data.set_volatile(false);
    CHECK(of_data.requires_grad());

    // set_volatile(true) on a result: the graph below it stays, and nothing above it is recorded.
    const Variable w(floats({3}));
    const Variable y = result(w);
    y.set_volatile(true);
    const Variable z = result(y);
    CHECK(z.is_volatile());
    CHECK(z.creator() == nullptr);
    y.set_volatile(false);
    CHECK(y.requires_grad());
    y.backward();
    CHECK(values(w.grad()) == Values{6});
    z.set_volatile(false);
    result(z).backward();
    CHECK(values(z.grad()) == Values{162});
    CHECK(values(w.grad()) == Values{6});
}

TEST_CASE("without backprop no graph is recorded") {
    const Variable x(floats({2}));
    {
        const no_backprop_mode scope;
        const Variable y = mul.first({&x, &x});
        CHECK(y.creator() == nullptr);
        CHECK_FALSE(y.requires_grad());
        CHECK_FALSE(y.is_volatile());
        const force_backprop_mode inner;
        CHECK(mul.first({&x, &x}).creator() != nullptr);
    }
    CHECK(mul.first({&x, &x}).creator() != nullptr);
}

TEST_CASE("an error in the middle leaves nothing on its way; the next backward is right") {
    const PluginFunction fragile("toy.fragile");
    const Variable x(floats({2}));
    const Variable h = mul.first({&x, &x});
    const Variable left = fragile.first({&h});
    const Variable right = twice.first({&h});
    const Variable y = add.first({&right, &left});
    for (const bool on_variables : {false, true}) {
        for (const bool retain : {false, true}) {
            if (on_variables) {
                CHECK_THROWS_AS(y.backward(retain, true), NotDifferentiableError);
            } else {
                toys::fail_backward = true;
                CHECK_THROWS_WITH_AS(y.backward(retain), "[toy.fragile backward] gy: it broke",
                                     ValueError);
            }
            x.cleargrad();
            y.backward();
            CHECK(values(x.grad()) == Values{12});
            x.cleargrad();
        }
    }
}

TEST_CASE("ties are broken by the order of arrival: the same sums, bit for bit") {
    // Summing 0.1 + 0.2 + 0.3 in another order gives different bits.
    Values first;
    for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<Variable> noise;  // changes the addresses of later nodes
        for (int i = 0; i < repeat; ++i) noise.emplace_back(floats({1}));
        const Variable x(doubles({1}));
        const Variable h = scaled(x, 1);
        const Variable a = scaled(h, 0.1), b = scaled(h, 0.2), c = scaled(h, 0.3);
        const Variable y = PluginFunction("toy.total").first({&a, &b, &c});
        y.backward();
        if (first.empty()) first = values(x.grad());
        CHECK(values(x.grad()) == first);
    }
    CHECK(first == Values{(0.1 + 0.2) + 0.3});
}

TEST_CASE("variables: data can be replaced, names and text") {
    const Variable x(floats({1}));
    CHECK(x.name().empty());
    x.set_name("x");
    CHECK(x.name() == "x");
    const Variable same = x;
    same.set_data(floats({5}));
    CHECK(values(x.data()) == Values{5});
    CHECK_THROWS_WITH_AS(Variable{Array()},
                         "[variable] data: expected an array, got an empty handle", InvalidError);
    CHECK_THROWS_AS(x.set_data(Array()), InvalidError);
    CHECK_THROWS_WITH_AS((void)Variable().data(),
                         "[variable] expected a variable, got an empty handle", InvalidError);
    // The gradient is computed from the array of the call, not from the variable's current data.
    const Variable y = mul.first({&x, &x});
    x.set_data(floats({100}));
    y.backward();
    CHECK(values(x.grad()) == Values{10});
}
