// Tests of gradients of gradients, for every way in which a function can define its gradient.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

// Returns dy/dx as a variable with a graph, and clears x.grad.
Variable derivative(const Variable& y, const Variable& x) {
    x.cleargrad();
    y.backward(false, true);
    const Variable gx = x.grad_variable();
    x.cleargrad();
    return gx;
}

}  // namespace

TEST_CASE("x^3 to any order, by composition, by a gradient function, by both mixed") {
    const Variable x(doubles({2}));
    const auto composed = [&] {
        const Variable square = mul.first({&x, &x});
        return mul.first({&square, &x});
    };
    const auto named = [&] { return cube.first({&x}); };
    const auto mixed = [&] {  // x^9 / x^6
        const Variable c = cube.first({&x});
        const Variable nine = cube.first({&c});
        const Variable r = PluginFunction("toy.reciprocal").first({&c});
        const Variable rr = mul.first({&r, &r});
        return mul.first({&nine, &rr});
    };
    for (const Variable& y : {composed(), named(), mixed()}) {
        CHECK(values(y.data())[0] == doctest::Approx(8));
        const Variable first = derivative(y, x);
        CHECK(values(first.data())[0] == doctest::Approx(12));
        const Variable second = derivative(first, x);
        CHECK(values(second.data())[0] == doctest::Approx(12));
        const Variable third = derivative(second, x);
        CHECK(values(third.data())[0] == doctest::Approx(6));
        if (third.creator() == nullptr) {  // a constant
            CHECK_THROWS_AS(third.backward(), GraphError);
        } else if (const Variable fourth = derivative(third, x)) {
            CHECK(values(fourth.data())[0] == doctest::Approx(0).epsilon(1e-9));
        }
        // The graph of the first derivative is still intact.
        CHECK(values(derivative(first, x).data())[0] == doctest::Approx(12));
    }
}

TEST_CASE("the last order may use kernels: a plain backward of a gradient") {
    const Variable x(doubles({2, 3}));
    const Variable y = cube.first({&x});
    const Variable total = sum.first({&y});
    const Variable gx = derivative(total, x);
    CHECK(values(gx.data()) == Values{12, 27});
    CHECK(gx.creator() != nullptr);
    const Variable loss = sum.first({&gx});
    loss.backward();
    CHECK(values(x.grad()) == Values{12, 18});
    CHECK_FALSE(x.grad_variable().creator());
}

TEST_CASE("gradient penalty: loss and the norm of its gradient together") {
    // L = x^3; P = (dL/dx)^2 = 9 x^4; d(L + P)/dx = 3 x^2 + 36 x^3.
    const Variable x(doubles({2}));
    const Variable loss = cube.first({&x});
    const Variable gx = derivative(loss, x);
    const Variable penalty = mul.first({&gx, &gx});
    const Variable all = add.first({&loss, &penalty});
    all.cleargrad();
    loss.cleargrad();
    all.backward();
    CHECK(values(x.grad()) == Values{12 + 288});
}

TEST_CASE("without clearing, the second gradient adds to the first and leaves its graph intact") {
    const Variable x(doubles({2}));
    const Variable y = cube.first({&x});
    y.backward(false, true);
    const Variable gx = x.grad_variable();
    const Variable square = mul.first({&gx, &gx});  // retains gx: 144
    square.backward();                              // not recorded: 36 x^3 = 288
    CHECK(values(x.grad()) == Values{12 + 288});
    CHECK(values(gx.data()) == Values{12});
    x.cleargrad();
    square.backward(false, true);
    CHECK(values(x.grad()) == Values{288});
    square.backward(false, true);  // the sum is recorded
    CHECK(values(x.grad()) == Values{576});
    CHECK(values(gx.data()) == Values{12});
    square.backward();
    CHECK(values(x.grad()) == Values{864});
    square.backward();  // adds in place
    CHECK(values(x.grad()) == Values{1152});
}

TEST_CASE("a gradient that was there without a graph takes part as a constant") {
    const Variable x(doubles({2}));
    x.set_grad(doubles({100}));
    const Variable y = cube.first({&x});
    y.backward(false, true);
    CHECK(values(x.grad()) == Values{112});
    const Variable gx = x.grad_variable();
    CHECK(values(derivative(gx, x).data()) == Values{12});
}

TEST_CASE("the gradient that starts may be a variable itself") {
    const Variable x(doubles({3}));
    const Variable v(doubles({5}));
    const Variable y = mul.first({&x, &x});
    y.set_grad(v);
    y.backward(false, true);
    const Variable gx = x.grad_variable();  // 2 x v
    CHECK(values(gx.data()) == Values{30});
    x.cleargrad();
    gx.backward();
    CHECK(values(v.grad()) == Values{6});
    CHECK(values(x.grad()) == Values{10});
    CHECK(values(y.grad()) == Values{5});
}

TEST_CASE("retained gradients of results are variables too") {
    const Variable x(doubles({2}));
    const Variable h = mul.first({&x, &x});
    const Variable y = mul.first({&h, &h});  // x^4
    y.backward(true, true);
    const Variable gh = h.grad_variable();  // 2 h = 2 x^2
    CHECK(values(gh.data()) == Values{8});
    CHECK(values(derivative(gh, x).data()) == Values{8});
}

TEST_CASE("intermediate results whose handles are gone are still differentiable") {
    const Variable x(doubles({2}));
    Variable y;
    {
        const Variable c = cube.first({&x});
        const Variable r = PluginFunction("toy.reciprocal").first({&c});  // retains its output
        y = mul.first({&r, &r});                                          // x^-6
    }
    const Variable first = derivative(y, x);
    CHECK(values(first.data())[0] == doctest::Approx(-6 / 128.0));
    const Variable second = derivative(first, x);
    CHECK(values(second.data())[0] == doctest::Approx(42 / 256.0));
}

TEST_CASE("a missing gradient of one output") {
    const Variable x(doubles({2}));
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        const auto parts = PluginFunction("toy.split")({&x});
        const Variable y = cube.first({&parts[which]});
        const double f = which ? 3 : 2;  // y = f^3 x^3
        const Variable first = derivative(y, x);
        CHECK(values(first.data())[0] == f * f * f * 12);
        CHECK(values(derivative(first, x).data())[0] == f * f * f * 12);
    }
}

TEST_CASE("an input that is not differentiable is a constant in the gradient") {
    const Variable x(doubles({3})), w(doubles({2}));
    const Variable scaled = PluginFunction("toy.weight").first({&x, &w});
    const Variable first = derivative(mul.first({&scaled, &scaled}), x);
    CHECK(values(first.data()) == Values{24});
    CHECK(values(derivative(first, x).data()) == Values{8});
    CHECK(!w.grad());
}

TEST_CASE("shapes: through sums and views") {
    const Variable x(Array::from<double>({1, 2, 3, 4}, {2, 2}));
    const Variable flat =
        PluginFunction("toy.view", {{"shape", std::vector<std::int64_t>{4}}}).first({&x});
    const Variable c = cube.first({&flat});
    const Variable y = sum.first({&c});
    const Variable gx = derivative(y, x);
    CHECK(gx.shape() == Shape{2, 2});
    CHECK(values(gx.data()) == Values{3, 12, 27, 48});
    const Variable total = sum.first({&gx});
    const Variable second = derivative(total, x);
    CHECK(second.shape() == Shape{2, 2});
    CHECK(values(second.data()) == Values{6, 12, 18, 24});
}

TEST_CASE("never a silent detach: a function of first order says so") {
    const Variable x(doubles({2}));
    const Variable y = PluginFunction("toy.twice").first({&x});
    CHECK_THROWS_WITH_AS(y.backward(false, true),
                         "[toy.twice] backward: it has no gradient of higher order: neither "
                         "gradient() nor grad_function",
                         NotDifferentiableError);
    y.backward();
    CHECK(values(x.grad()) == Values{2});
    const Variable z = PluginFunction("toy.noise").first({&x});
    CHECK_THROWS_WITH_AS(z.backward(),
                         "[toy.noise] backward: no kernel for it on toy:0 and no gradient()",
                         NotDifferentiableError);
}

TEST_CASE("data replaced after the call: refused where it would give a wrong graph") {
    const Variable x(doubles({2}));
    const Variable y = cube.first({&x});
    x.set_data(doubles({7}));
    CHECK_THROWS_WITH_AS(y.backward(false, true),
                         "[toy.cube] backward: the data of x was replaced after the call",
                         GraphError);
    y.backward();  // a first-order gradient uses the array of the call
    CHECK(values(x.grad()) == Values{12});
}

TEST_CASE("gradients record a graph even where the thread records none") {
    const Variable x(doubles({2}));
    const Variable y = cube.first({&x});
    {
        const no_backprop_mode scope;
        y.backward(false, true);
    }
    CHECK(x.grad_variable().creator() != nullptr);
    x.cleargrad();
    y.backward();
    CHECK(x.grad_variable().creator() == nullptr);
}

TEST_CASE("a gradient of the wrong shape is the function's fault, and is named") {
    toys::Plugin plugin("toys.wrong-gradient");
    auto& f = plugin.function("toy.wrong_gradient", {{"x"}}, {{"y"}}, toys::infer_same);
    f.gradient = [](catena_ctx* ctx, const catena_gradient_call* g) -> catena_status {
        g->gx[0] = toys::call(ctx, "toy.sum", {g->gy[0]});
        return CATENA_OK;
    };
    plugin.kernel("toy.wrong_gradient", [](catena_ctx*, const catena_call* c) -> catena_status {
        for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i) toys::put(*c->y[0], i, 1);
        return CATENA_OK;
    });
    plugin.add();
    const Variable x(doubles({1, 2}));
    const Variable y = PluginFunction("toy.wrong_gradient").first({&x});
    y.set_grad(doubles({1, 1}));
    CHECK_THROWS_WITH_AS(
        y.backward(), "[toy.wrong_gradient] backward: gradient of x: expected shape (2,), got ()",
        ShapeError);
}

TEST_CASE("an error inside a composition comes out with its own words") {
    toys::Plugin plugin("toys.failing-gradient");
    auto& f = plugin.function("toy.failing_gradient", {{"x"}}, {{"y"}}, toys::infer_same);
    f.gradient = [](catena_ctx* ctx, const catena_gradient_call*) -> catena_status {
        return toys::call(ctx, "toy.not_there", {}) ? CATENA_OK : CATENA_E_INTERNAL;
    };
    plugin.kernel("toy.failing_gradient", [](catena_ctx*, const catena_call* c) -> catena_status {
        toys::put(*c->y[0], 0, 1);
        return CATENA_OK;
    });
    plugin.add();
    const Variable x(doubles({1}));
    const Variable y = PluginFunction("toy.failing_gradient").first({&x});
    try {
        y.backward();
        FAIL("expected an error");
    } catch (const Error& error) {
        INFO(error.what());
        CHECK(std::string(error.what()).find("no plugin has the function toy.not_there") !=
              std::string::npos);
        CHECK(std::string(error.what()).find("[toy.failing_gradient gradient]") == 0);
    }
}
