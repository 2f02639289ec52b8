// Tests of grad(), which computes requested gradients only, and of backward() from several outputs.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <thread>

using namespace catena;
using namespace toys;

namespace {

Variable scaled(const Variable& x, double factor) {
    return PluginFunction("toy.scale", {{"factor", factor}}).first({&x});
}

// Checks that no gradients of earlier passes are left: grad() returns expected twice, keeps x.grad.
void check_clean(const Variable& y, const Variable& x, const Values& expected) {
    const Array before = x.grad();
    for (int i = 0; i < 2; ++i) CHECK(values(grad({y}, {x})[0].data()) == expected);
    CHECK(x.grad().body() == before.body());
}

}  // namespace

TEST_CASE("x cubed at 3: 27 and 18, and the leaf's grad is untouched") {
    const Variable x(doubles({3}));
    for (const Variable& y : {cube.first({&x}), [&] {
                                  const Variable square = mul.first({&x, &x});
                                  return mul.first({&square, &x});
                              }()}) {
        const auto gx = grad({y}, {x}, {}, {}, {.enable_double_backprop = true});
        REQUIRE(gx.size() == 1);
        CHECK(values(gx[0].data()) == Values{27});
        CHECK(gx[0].requires_grad());
        const auto ggx = grad(gx, {x});
        CHECK(values(ggx[0].data()) == Values{18});
        CHECK_FALSE(ggx[0].requires_grad());
        CHECK(ggx[0].creator() == nullptr);
        CHECK_FALSE(x.grad());
        check_clean(y, x, {27});
    }
}

TEST_CASE("without double backprop the kernels run") {
    const Variable x(floats({1, 2, 3}));
    const Variable y = mul.first({&x, &x});
    seen("toy.mul").clear();
    CHECK(values(grad({y}, {x})[0].data()) == Values{2, 4, 6});  // a missing gy means ones
    CHECK(seen("toy.mul").backward == 1);
    CHECK(seen("toy.mul").gradient == 0);
    const Variable gy(floats({1, 10, 100}));
    CHECK(values(grad({y}, {x}, {gy})[0].data()) == Values{2, 40, 600});
    CHECK(values(grad({y}, {x}, {Variable()})[0].data()) == Values{2, 4, 6});
    CHECK_FALSE(y.grad());
    x.set_grad(floats({7, 7, 7}));
    CHECK(values(grad({y}, {x})[0].data()) == Values{2, 4, 6});
    CHECK(values(x.grad()) == Values{7, 7, 7});
}

TEST_CASE("only the calls on the way are walked") {
    const Variable x(floats({2})), w(floats({5}));
    const Variable h = scaled(x, 3);            // 6
    const Variable side = mul.first({&w, &w});  // leads only to w
    const Variable y = mul.first({&h, &side});
    seen("toy.mul").clear();
    seen("toy.scale").clear();
    CHECK(values(grad({y}, {x})[0].data()) == Values{75});
    CHECK(seen("toy.mul").backward == 1);
    CHECK(seen("toy.mul").targets == 1);
    CHECK(seen("toy.scale").gradient == 1);
    seen("toy.mul").clear();
    CHECK(values(grad({y}, {w})[0].data()) == Values{60});
    CHECK(seen("toy.mul").backward == 2);
    CHECK(seen("toy.scale").gradient == 1);
    const auto both = grad({y}, {w, x});
    CHECK(values(both[0].data()) == Values{60});
    CHECK(values(both[1].data()) == Values{75});
    CHECK_FALSE(w.grad());
    CHECK_FALSE(x.grad());
    check_clean(y, w, {60});
    y.backward();  // backward() works as before
    CHECK(values(w.grad()) == Values{60});
    CHECK(values(x.grad()) == Values{75});
}

TEST_CASE("inputs may be results, of any rank, and stop nothing below") {
    const Variable x(doubles({2}));
    const Variable h = mul.first({&x, &x});  // 4
    const Variable k = mul.first({&h, &x});  // 8
    const Variable y = mul.first({&k, &h});  // 32 = h^2 x = x^5
    for (const bool record : {false, true}) {
        seen("toy.mul").clear();
        const GradOptions options{.enable_double_backprop = record};
        CHECK(values(grad({y}, {h}, {}, {}, options)[0].data()) == Values{16});  // 2 h x
        CHECK_FALSE(x.grad());
        const auto all = grad({y}, {x, h, k, y, x}, {}, {}, options);
        CHECK(values(all[0].data()) == Values{80});
        CHECK(values(all[1].data()) == Values{16});
        CHECK(values(all[2].data()) == Values{4});
        CHECK(values(all[3].data()) == Values{1});
        CHECK(values(all[4].data()) == Values{80});
        CHECK_FALSE(x.grad());
        CHECK_FALSE(h.grad());
        check_clean(y, x, {80});
    }
    // d2y/dh2 = 2x, through k.
    const auto gh = grad({y}, {h}, {}, {}, {.enable_double_backprop = true});
    CHECK(values(grad(gh, {h})[0].data()) == Values{4});
    // The output h does not depend on the input k.
    CHECK_FALSE(grad({h}, {k})[0]);
    CHECK_FALSE(x.grad());
}

TEST_CASE("what cannot be reached is none") {
    const Variable x(floats({2})), other(floats({2}));
    const Variable constant = as_variable(floats({3}));
    const Variable y = mul.first({&x, &constant});
    const auto g = grad({y}, {other, x, constant});
    CHECK_FALSE(g[0]);
    CHECK(values(g[1].data()) == Values{3});
    CHECK_FALSE(g[2]);
    CHECK(grad({y}, {}).empty());
    CHECK_FALSE(grad({}, {x})[0]);
    CHECK_FALSE(grad({x}, {other})[0]);
    CHECK(values(grad({x}, {x})[0].data()) == Values{1});
    CHECK(values(grad({x}, {x}, {other})[0].data()) == Values{2});
}

TEST_CASE("several outputs, and one twice: gradients add up") {
    const Variable x(floats({3}));
    const Variable h = mul.first({&x, &x});  // 9
    const Variable y = mul.first({&h, &x});  // 27
    const Variable gh(floats({10}));
    for (const bool record : {false, true}) {
        const GradOptions options{.enable_double_backprop = record};
        CHECK(values(grad({y, h}, {x}, {Variable(), gh}, {}, options)[0].data()) == Values{87});
        CHECK(values(grad({y, y}, {x}, {}, {}, options)[0].data()) == Values{54});
        CHECK(values(grad({h, y}, {h}, {gh, Variable()}, {}, options)[0].data()) == Values{13});
    }
    CHECK(values(gh.data()) == Values{10});  // the given gradient is not changed
}

TEST_CASE("grad_inputs: what a gradient is added to") {
    const Variable x(floats({3})), other(floats({1}));
    const Variable y = mul.first({&x, &x});
    const Variable before(floats({100}));
    for (const bool record : {false, true}) {
        const GradOptions options{.enable_double_backprop = record};
        const auto g = grad({y}, {x, other}, {}, {before, before}, options);
        CHECK(values(g[0].data()) == Values{106});
        CHECK(values(g[1].data()) == Values{100});
        CHECK(values(grad({y}, {other, x}, {}, {before, Variable()}, options)[1].data()) ==
              Values{6});
    }
    CHECK(values(before.data()) == Values{100});
}

TEST_CASE("set_grad and retain_grad") {
    const Variable x(floats({3})), other(floats({1}));
    x.set_grad(floats({1000}));
    other.set_grad(floats({1000}));
    const Variable h = mul.first({&x, &x});
    const Variable y = scaled(h, 2);
    const auto g = grad({y}, {x, other}, {}, {}, {.set_grad = true});
    CHECK(values(x.grad()) == Values{12});
    CHECK_FALSE(other.grad());
    CHECK_FALSE(h.grad());
    y.backward();
    CHECK(values(x.grad()) == Values{24});
    CHECK(values(g[0].data()) == Values{12});  // x.grad does not share its memory
    for (const bool record : {false, true}) {
        h.cleargrad();
        grad({y}, {x}, {}, {}, {.retain_grad = true, .enable_double_backprop = record});
        CHECK(values(h.grad()) == Values{2});
        CHECK(static_cast<bool>(h.grad_variable().creator()) == false);
    }
    h.cleargrad();
    CHECK(values(grad({y}, {h}, {}, {}, {.retain_grad = true})[0].data()) == Values{2});
    CHECK(values(h.grad()) == Values{2});
    const auto gg = grad({y}, {x}, {}, {}, {.set_grad = true, .enable_double_backprop = true});
    CHECK(&x.grad_variable().node() == &gg[0].node());
}

TEST_CASE("gradients with respect to grad_outputs") {
    const Variable x(doubles({3}));
    const Variable gy(doubles({5}));
    const Variable y = mul.first({&x, &x});
    const auto gx = grad({y}, {x}, {gy}, {}, {.enable_double_backprop = true});
    CHECK(values(gx[0].data()) == Values{30});
    const auto second = grad(gx, {gy, x});
    CHECK(values(second[0].data()) == Values{6});
    CHECK(values(second[1].data()) == Values{10});
}

TEST_CASE("outputs of one call: those without a gradient stay none") {
    const Variable x(floats({1}));
    const auto parts = PluginFunction("toy.split")({&x});
    CHECK(values(grad({parts[1]}, {x})[0].data()) == Values{3});
    CHECK(values(grad(parts, {x})[0].data()) == Values{5});
    CHECK(values(grad({parts[0]}, {x, parts[1]})[0].data()) == Values{2});
    CHECK_FALSE(grad({parts[0]}, {x, parts[1]})[1]);
}

TEST_CASE("many inputs accumulate into what they ask for") {
    const Variable x(floats({2}));
    const Variable a = mul.first({&x, &x});
    const Variable b = mul.first({&x, &x});
    const Variable y = add.first({&a, &b});
    x.set_grad(floats({50}));
    seen("toy.mul").clear();
    CHECK(values(grad({y}, {x})[0].data()) == Values{8});
    CHECK(seen("toy.mul").adds >= 1);
    CHECK(values(x.grad()) == Values{50});
}

TEST_CASE("grad: wrong arguments, and an error on the way leaves no trace") {
    const Variable x(floats({2}));
    const Variable y = mul.first({&x, &x});
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {x, x}), "[grad] grad_outputs: expected 1 or none, got 2",
                         InvalidError);
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {}, {x, x}),
                         "[grad] grad_inputs: expected 1 or none, got 2", InvalidError);
    CHECK_THROWS_WITH_AS(grad({Variable()}, {x}),
                         "[grad] outputs[0]: expected a variable, got an empty handle",
                         InvalidError);
    CHECK_THROWS_WITH_AS(grad({y}, {x, Variable()}),
                         "[grad] inputs[1]: expected a variable, got an empty handle",
                         InvalidError);
    const Variable wide(floats({1, 2}));
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {wide}),
                         "[grad] grad_outputs[0]: expected shape (1,), got (2,)", ShapeError);
    const Variable fine(doubles({1}));
    CHECK_THROWS_WITH_AS(grad({y}, {x}, {}, {fine}),
                         "[grad] grad_inputs[0]: expected float32, got float64", DtypeError);
    const auto largest = PluginFunction("toy.largest")({&x});
    CHECK_THROWS_WITH_AS(grad({largest[1]}, {x}),
                         "[grad] outputs[0]: expected a floating dtype, got int64", DtypeError);

    const PluginFunction fragile("toy.fragile");
    const Variable h = mul.first({&x, &x});
    const Variable left = fragile.first({&h});
    const Variable right = twice.first({&h});
    const Variable z = add.first({&right, &left});
    toys::fail_backward = true;
    CHECK_THROWS_AS(grad({z}, {x}), ValueError);
    check_clean(z, x, {12});
    CHECK_THROWS_AS(grad({z}, {x}, {}, {}, {.enable_double_backprop = true}),
                    NotDifferentiableError);
    check_clean(z, x, {12});
    CHECK(values(grad({z}, {x})[0].data()) == Values{12});
}

namespace {

// A gradient() that calls grad() itself, on another graph with the same leaf.
Variable shared_leaf;
catena_status nested_gradient(catena_ctx*, const catena_gradient_call* g) {
    const force_backprop_mode scope;
    const Variable inner = mul.first({&shared_leaf, &shared_leaf});
    CHECK(values(grad({inner}, {shared_leaf})[0].data()) == Values{6});
    g->gx[0] = g->gy[0];
    return CATENA_OK;
}

}  // namespace

TEST_CASE("a pass within a pass: the outer one's gradients wait unharmed") {
    toys::Plugin plugin("toys.nested");
    auto& f = plugin.function("toy.nested", {{"x"}}, {{"y"}}, toys::infer_same);
    f.gradient = nested_gradient;
    plugin.kernel("toy.nested", [](catena_ctx*, const catena_call* c) -> catena_status {
        for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i) {
            toys::put(*c->y[0], i, toys::get(*c->x[0], i));
        }
        return CATENA_OK;
    });
    plugin.add();
    shared_leaf = Variable(floats({3}));
    const Variable other(floats({4}));
    const Variable deep = mul.first({&shared_leaf, &other});
    const Variable nested = PluginFunction("toy.nested").first({&deep});
    const Variable y = mul.first({&nested, &shared_leaf});  // leaf^2 other; leaf.grad comes first
    const auto g = grad({y}, {shared_leaf});
    CHECK(values(g[0].data()) == Values{24});
    y.backward();
    CHECK(values(shared_leaf.grad()) == Values{24});
    CHECK(values(other.grad()) == Values{9});
    check_clean(y, shared_leaf, {24});
    shared_leaf = Variable();
}

TEST_CASE("a long chain: found, walked and left without recursion") {
    const Variable x(Array::ones({}));
    Variable y = x;
    for (int i = 0; i < toys::many; ++i) y = add.first({&y, &x});
    CHECK(grad({y}, {x})[0].data().item<float>() == toys::many + 1);
    CHECK_FALSE(x.grad());
}

TEST_CASE("backward from several heads: what they share is walked once") {
    const Variable x(floats({3}));
    const Variable h = mul.first({&x, &x});  // 9
    const Variable y = scaled(h, 2);
    const Variable z = mul.first({&h, &x});  // 27
    for (const bool record : {false, true}) {
        x.cleargrad();
        seen("toy.mul").clear();
        backward({y, z}, {}, {.enable_double_backprop = record});
        CHECK(values(x.grad()) == Values{12 + 27});
        CHECK((record ? seen("toy.mul").gradient : seen("toy.mul").backward) == 2);
        backward({y, z}, {}, {.enable_double_backprop = record});  // leaves accumulate gradients
        CHECK(values(x.grad()) == Values{78});
    }
    x.cleargrad();
    backward({z, h}, {Variable(floats({2})), Variable(floats({10}))});
    CHECK(values(x.grad()) == Values{54 + 60});
    CHECK(values(z.grad()) == Values{1});
    x.cleargrad();
    backward({z}, {}, {.retain_grad = true});
    CHECK(values(h.grad()) == Values{3});
}

TEST_CASE("several heads: an empty gradient is none, and a leaf gets its own") {
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    const Variable z = mul.first({&y, &x});
    z.set_grad(floats({100}));
    for (const bool record : {false, true}) {
        const BackwardOptions options{.enable_double_backprop = record};
        x.cleargrad();
        backward({z, x, y}, {Variable(), Variable(floats({5})), Variable(floats({1}))}, options);
        CHECK(values(x.grad()) == Values{5 + 6});
        backward({x, x}, {Variable(floats({1})), Variable(floats({2}))}, options);
        CHECK(values(x.grad()) == Values{14});
        backward({x, z}, {Variable(), Variable()}, options);
        CHECK(values(x.grad()) == Values{14});
    }
    const Variable constant = as_variable(floats({1}));
    backward({constant, x}, {Variable(floats({1})), Variable()});
    CHECK_FALSE(constant.grad());
    const Array given = floats({7});
    x.cleargrad();
    backward({x}, {Variable(given)});
    x.zerograd();
    CHECK(values(given) == Values{7});
}

TEST_CASE("leaves keep the loss scale of their gradient") {
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    CHECK(x.node().loss_scale == 1);
    backward({y}, {Variable(floats({4}))}, {.loss_scale = 4});
    CHECK(x.node().loss_scale == 4);
    CHECK(y.node().loss_scale == 1);
    x.zerograd();  // the kernel adds to it
    backward({y}, {Variable(floats({8}))}, {.loss_scale = 8});
    CHECK(values(x.grad()) == Values{48});
    CHECK(x.node().loss_scale == 8);
    y.backward();
    CHECK(x.node().loss_scale == 1);
    backward({y}, {Variable(floats({2}))}, {.enable_double_backprop = true, .loss_scale = 2});
    CHECK(x.node().loss_scale == 2);
}

namespace {

// The identity. Its gradient calls a function first.
class Calls final : public GraphNode {
public:
    static Variable on(const Variable& x, std::function<void()> function) {
        const Ref<GraphNode> owner(new Calls(std::move(function)));
        const std::vector<Variable> y = {Variable(x.data())};
        const Variable* const inputs[] = {&x};
        static_cast<Calls&>(*owner).record(inputs, y);
        return y[0];
    }
    std::string_view label() const noexcept override { return "Calls"; }
    void gradients(std::span<const Variable> gy, std::span<const bool>,
                   std::span<Variable> gx) override {
        function_();
        gx[0] = gy[0];
    }

private:
    explicit Calls(std::function<void()> function) : function_(std::move(function)) {}
    std::function<void()> function_;
};

}  // namespace

TEST_CASE("a backward() within a backward() has its loss scale") {
    const Variable x(floats({3})), other(floats({5}));
    const Variable inner = mul.first({&other, &other});
    const Variable y = Calls::on(x, [&] { inner.backward(); });
    backward({y}, {Variable(floats({4}))}, {.loss_scale = 4});
    CHECK(other.node().loss_scale == 4);
    CHECK(x.node().loss_scale == 4);
    inner.backward();
    CHECK(other.node().loss_scale == 1);
}

// Host programs may let a second thread compute while a function of theirs waits in the first one.
TEST_CASE("passes of two threads over one graph may end in any order") {
    std::binary_semaphore first_waits(0), second_waits(0), first_ended(0);
    std::atomic<int> calls = 0;
    const Variable x(floats({3}));
    const Variable y = mul.first({&x, &x});
    const Variable z = Calls::on(y, [&] {
        if (calls++ == 0) {
            first_waits.release();
            second_waits.acquire();
        } else {
            second_waits.release();
            first_ended.acquire();
        }
    });
    const Variable w = add.first({&z, &y});  // y's call is scheduled while z's runs
    Values first, second;
    std::thread thread([&] {
        first_waits.acquire();
        second = values(grad({w}, {x})[0].data());
    });
    first = values(grad({w}, {x})[0].data());
    first_ended.release();
    thread.join();
    CHECK(first == Values{12});
    CHECK(second == Values{12});
    check_clean(mul.first({&y, &x}), x, {27});
}

TEST_CASE("a check ends a pass between two calls") {
    static int left;
    const Variable x(floats({3}));
    Variable y = x;
    for (int i = 0; i < 5; ++i) y = mul.first({&y, &x});
    left = 3;
    set_backward_check([] {
        if (left-- == 0) throw std::runtime_error("interrupted");
    });
    CHECK_THROWS_WITH(grad({y}, {x}), "interrupted");
    left = 3;
    CHECK_THROWS_WITH(y.backward(), "interrupted");
    left = 4;
    x.cleargrad();
    y.backward();
    CHECK(left == 0);
    set_backward_check(nullptr);
    CHECK(values(x.grad()) == Values{6 * 243});
    check_clean(y, x, {6 * 243});
}

TEST_CASE("several heads: wrong arguments harm nothing") {
    const Variable x(floats({3, 4}));
    const Variable y = mul.first({&x, &x});
    const Variable z = twice.first({&y});
    CHECK_THROWS_AS(backward({z}), GraphError);
    CHECK_THROWS_WITH_AS(backward({z, y}, {Variable(floats({1, 1}))}),
                         "[backward] grad_outputs: expected 2 or none, got 1", InvalidError);
    CHECK_THROWS_WITH_AS(backward({z, y}, {Variable(floats({1, 1})), Variable(floats({1}))}),
                         "[backward] grad_outputs[1]: expected shape (2,), got (1,)", ShapeError);
    CHECK_THROWS_AS(backward({Variable()}), InvalidError);
    CHECK_FALSE(x.grad());
    check_clean(y, x, {6, 8});
    backward({z, y}, {Variable(floats({1, 1})), Variable(floats({1, 0}))});
    CHECK(values(x.grad()) == Values{12 + 6, 16});
}
