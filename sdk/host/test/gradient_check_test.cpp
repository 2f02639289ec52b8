// Tests of gradient checks: correct gradients pass, wrong ones do not.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace catena;
using namespace catena::gradient_check;
namespace F = catena::functions;

namespace {

const Array x0 = Array::from({0.5, -1.5, 2.0, 0.25}, {2, 2});
const Array x1 = Array::from({1.5, 0.5, -1.0, 3.0}, {2, 2});
const Array gy = Array::from({0.5, -1.0, 0.25, 2.0}, {2, 2});

// Has the value of product, but a gradient twice as large.
std::vector<Variable> wrong(const Variables& v) {
    return {v[0] * v[1] * 2 + Variable(v[0].data()) * Variable(v[1].data()) * -1};
}

}  // namespace

TEST_CASE("assert_allclose allows what it says") {
    const auto a = [](double x) { return Array::from({1.0, x}, {2}); };
    assert_allclose(a(100.009), a(100), 0, 1e-4);
    assert_allclose(a(100), Array::from({1.F, 100.F}, {2}), 0, 0);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double inf = std::numeric_limits<double>::infinity();
    assert_allclose(a(nan), a(nan));
    assert_allclose(a(inf), a(inf));
    CHECK_THROWS_AS(assert_allclose(a(nan), a(1)), CheckError);
    CHECK_THROWS_AS(assert_allclose(a(inf), a(-inf)), CheckError);
    CHECK_THROWS_AS(assert_allclose(a(inf), a(1)), CheckError);
    CHECK_THROWS_AS(assert_allclose(a(1), Array::from({1.0, 1.0}, {2, 1})), CheckError);
    contains(error_of<CheckError>([&] { assert_allclose(a(100.02), a(100), 0, 1e-4); }),
             "1 of 2 elements differ; the worst, 1 in row-major order: expected 100, got 100.02");
}

TEST_CASE("a verbose assert_allclose has the arrays, another has not") {
    const Array x = Array::from({1.0, 3.5}, {2}), y = Array::from({1.0, 2.5}, {2});
    const std::string verbose = error_of<CheckError>([&] { assert_allclose(x, y); });
    contains(verbose, "1 of 2 elements differ");
    contains(verbose, "\n  expected: " + to_string(y) + "\n  got: " + to_string(x));
    const std::string brief =
        error_of<CheckError>([&] { assert_allclose(x, y, 1e-5, 1e-4, /*verbose=*/false); });
    contains(brief, "1 of 2 elements differ");
    CHECK(brief.find('\n') == std::string::npos);
}

TEST_CASE("functions of variables and of arrays, and plain arrays, as they are") {
    const auto square = [](const Variable& x) { return x * x; };
    check_backward(square, x0, gy);
    check_double_backward(square, x0, gy, x1);
    check_backward([](const Variable& x, const Variable& y) { return x * y; }, {x0, x1}, gy);
    check_backward(
        [](const Variable& x, const Variable& y) {
            return Variables{x * y, x};
        },
        {x0, x1}, {gy, gy});
    check_backward([](const Variable& x) { return std::array{x * x, x + x}; }, x0, {gy, gy});
    links::Linear linear(2, 2);
    linear.to(Dtype::float64);
    check_backward(linear, x0, gy);
    const auto half = [](const Variable& x) {
        return x * as_variable(0.5 * x.data());  // drops half of the gradient
    };
    CHECK_THROWS_AS(check_backward(half, x0, gy), CheckError);
    contains(error_of<InvalidError>([&] {
                 check_backward(square, {x0, x1}, gy);
             }),
             "[gradient_check] function: expected one that takes 2 variables, got another");

    const Array x = x0.copy();
    const auto [gx] = unpack<1>(numerical_grad([&] { return x * x; }, x, gy));
    assert_allclose(gx, 2 * x0 * gy);
    const auto lists = numerical_grad([&] { return Arrays{x * x}; }, {x}, {gy}, 1e-4);
    assert_allclose(lists[0], gx);
}

TEST_CASE("numerical_grad differentiates and restores") {
    const Array x = x0.copy();
    const auto square = [&]() -> Arrays { return {(Variable(x) * Variable(x)).data(), x.copy()}; };
    const auto grad = numerical_grad(square, Arrays{x}, Arrays{gy, Array()});
    assert_allclose(grad[0], Array::from({0.5, 3.0, 1.0, 1.0}, {2, 2}));
    CHECK(x.to_vector<double>() == x0.to_vector<double>());
    CHECK_THROWS_AS(numerical_grad(square, Arrays{x}, Arrays{gy}), ShapeError);
    CHECK_THROWS_AS(numerical_grad(square, Arrays{x}, Arrays{gy, gy}, 0), InvalidError);
    CHECK_THROWS_AS(numerical_grad(square, Arrays{Array::zeros({2}, Dtype::int32)}, Arrays{gy}),
                    DtypeError);
}

TEST_CASE("check_backward tells right from wrong") {
    const auto product = [](const Variables& v) -> Variables { return {v[0] * v[1]}; };
    check_backward(product, Arrays{x0, x1}, Arrays{gy});
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        check_backward(product, Arrays{x0, x1}, Arrays{gy}, {.seed = seed});
        CHECK_THROWS_AS(check_backward(wrong, Arrays{x0, x1}, Arrays{gy}, {.seed = seed}),
                        CheckError);
    }
    check_backward(product, Arrays{x0.astype(Dtype::float32), x1.astype(Dtype::float32)},
                   Arrays{gy.astype(Dtype::float32)}, {.dtype = Dtype::float64});
    // Several outputs, one of which is an input.
    check_backward(
        [](const Variables& v) -> Variables {
            return {v[0] * v[1], v[1], v[0] - v[1]};
        },
        Arrays{x0, x1}, Arrays{gy, gy, gy});
    CHECK_THROWS_AS(check_backward(product, Arrays{x0, x1}, Arrays{Array()}), ShapeError);
    CHECK_THROWS_AS(check_backward(product, Arrays{x0, x1}, Arrays{gy, gy}), ShapeError);
    CHECK_THROWS_AS(
        check_backward(product, Arrays{x0, x1}, Arrays{gy}, {.no_grads = {true, false}}),
        CheckError);
    check_backward([](const Variables& v) -> Variables { return {F::sum(v[0] * v[0])}; },
                   Arrays{x0}, Arrays{Array()});
}

TEST_CASE("parameters are checked too, and left as they were") {
    const Variable p(x1.copy());
    const auto function = [&](const Variables& v) -> Variables { return {v[0] * p * p}; };
    check_backward(function, Arrays{x0}, Arrays{gy}, {.params = {p}});
    CHECK(p.data().to_vector<double>() == x1.to_vector<double>());
    CHECK_FALSE(p.grad());
    const auto forgets = [&](const Variables& v) -> Variables {
        return {v[0] * Variable(p.data())};
    };
    CHECK_THROWS_AS(check_backward(forgets, Arrays{x0}, Arrays{gy}, {.params = {p}}), CheckError);
}

TEST_CASE("check_double_backward checks the second order") {
    const auto cube = [](const Variables& v) -> Variables { return {v[0] * v[0] * v[1]}; };
    check_double_backward(cube, Arrays{x0, x1}, Arrays{gy}, Arrays{x1, gy});
    const auto linear = [](const Variables& v) -> Variables { return {v[0] + v[1]}; };
    check_double_backward(linear, Arrays{x0, x1}, Arrays{gy}, Arrays{x1, gy});
    const Variable p(x1.copy());
    check_double_backward([&](const Variables& v) -> Variables { return {v[0] * p * p}; },
                          Arrays{x0}, Arrays{gy}, Arrays{x1, gy},
                          {.atol = 1e-4, .rtol = 1e-3, .params = {p}});
    // The second factor hides its dependence on x from the graph.
    const auto detached = [](const Variables& v) -> Variables {
        return {v[0] * Variable(v[0].data())};
    };
    CHECK_THROWS_AS(check_double_backward(detached, Arrays{x0}, Arrays{gy}, Arrays{x1}),
                    CheckError);
}

TEST_CASE("params of a float32 link are checked in float64 and come back as they were") {
    const links::Linear linear(2, 3);
    const auto params = linear.parameters();
    const auto w = params[0].data().to_vector<float>();
    const Options options{
        .eps = 1e-5, .atol = 1e-9, .rtol = 1e-7, .params = params, .dtype = Dtype::float64};
    const Array x = x0.astype(Dtype::float32);
    const Array g = Array::from({1.F, -0.5F, 2.F, 0.25F, 1.F, 3.F}, {2, 3});
    const std::vector<Array> ggx{x, Array::full({3, 2}, 0.5), Array::ones({3})};
    const auto body = params[0].data().body();
    const auto check_restored = [&] {
        for (const Variable& p : params) {
            CHECK(p.dtype() == Dtype::float32);
            CHECK_FALSE(p.grad());
        }
        CHECK(params[0].data().body() == body);
        CHECK(params[0].data().to_vector<float>() == w);
    };
    std::vector<Dtype> seen;
    const auto right = [&](const Variables& v) -> Variables {
        seen.push_back(params[0].dtype());
        const Variable y = F::linear(v[0], linear.W, linear.b);
        return {y * y};
    };
    linear.W.set_grad(Array::ones({3, 2}));  // the check clears it
    check_backward(right, Arrays{x}, Arrays{g}, options);
    check_restored();
    check_double_backward(right, Arrays{x}, Arrays{g}, ggx, options);
    check_restored();
    CHECK(std::count(seen.begin(), seen.end(), Dtype::float64) ==
          static_cast<std::ptrdiff_t>(seen.size()));

    // Has the correct value, but no gradient of W.
    const auto forgets = [&](const Variables& v) -> Variables {
        return {F::linear(v[0], as_variable(linear.W.data()), linear.b)};
    };
    CHECK_THROWS_AS(check_backward(forgets, Arrays{x}, Arrays{g}, options), CheckError);
    check_restored();
    const auto detached = [&](const Variables& v) -> Variables {
        return {F::linear(v[0], linear.W, linear.b) *
                as_variable(F::linear(v[0], linear.W, linear.b).data())};
    };
    CHECK_THROWS_AS(check_double_backward(detached, Arrays{x}, Arrays{g}, ggx, options),
                    CheckError);
    check_restored();
    // Throws in the call itself or at either shifted point.
    for (int fatal = 1; fatal <= 3; ++fatal) {
        int calls = 0;
        const auto throws = [&](const Variables& v) -> Variables {
            if (++calls == fatal) throw std::runtime_error("call");
            return {F::linear(v[0], linear.W, linear.b)};
        };
        CHECK_THROWS_AS(check_backward(throws, Arrays{x}, Arrays{g}, options), std::runtime_error);
        CHECK(calls == fatal);
        check_restored();
        calls = 0;
        CHECK_THROWS_AS(check_double_backward(throws, Arrays{x}, Arrays{g}, ggx, options),
                        std::runtime_error);
        check_restored();
    }
    CHECK_THROWS_AS(check_backward(right, Arrays{x}, Arrays{x}, options), ShapeError);
    check_restored();
}

TEST_CASE("a graph that outlives the function keeps its parameter, the others come back") {
    const links::Linear linear(2, 3);
    Variable kept;
    const auto hoards = [&](const Variables& v) -> Variables {
        kept = linear.W * 2;
        return {F::linear(v[0], linear.W, linear.b)};
    };
    const Options options{.params = linear.parameters(), .dtype = Dtype::float64};
    const Array g = Array::ones({2, 3}, Dtype::float64);
    CHECK_THROWS_AS(check_backward(hoards, Arrays{x0}, Arrays{g}, options), GraphError);
    CHECK(linear.b.dtype() == Dtype::float32);
    CHECK_FALSE(linear.W.grad());
    // An exception of the function takes precedence over the GraphError.
    kept = Variable();
    const auto both = [&](const Variables& v) -> Variables {
        kept = linear.W * 2;
        if (v[0]) throw std::runtime_error("mine");
        return {};
    };
    linear.W.set_data(linear.W.data().astype(Dtype::float32));
    CHECK_THROWS_AS(check_backward(both, Arrays{x0}, Arrays{g}, options), std::runtime_error);
}

TEST_CASE("a gradient that is wrong in one element of many, or a little, is found") {
    struct Off : FunctionNode {
        explicit Off(std::size_t i, double f) : at(i), factor(f) {}
        Arrays forward(std::span<const Array> x) override { return {x[0] * 3}; }
        Variables backward(std::span<const std::size_t>, std::span<const Variable> g) override {
            auto scale = std::vector<double>(64, 3);
            scale[at] *= factor;
            return {g[0] * as_variable(Array::from(scale, {64}))};
        }
        std::size_t at;
        double factor;
    };
    const Array x = Array::full({64}, 0.5, Dtype::float64);
    const Array g = Array::ones({64}, Dtype::float64);
    for (const std::size_t at : {0U, 31U, 63U}) {
        for (const double factor : {0.0, -1.0, 1.02}) {
            const auto off = [&](const Variables& v) { return apply<Off>({v[0]}, at, factor); };
            contains(error_of<CheckError>([&] { check_backward(off, Arrays{x}, Arrays{g}); }),
                     "[check_backward] derivative along a random direction");
        }
        const auto fine = [&](const Variables& v) { return apply<Off>({v[0]}, at, 1.0); };
        CHECK_NOTHROW(check_backward(fine, Arrays{x}, Arrays{g}));
    }
    const auto nan = [](const Variables& v) { return apply<Off>({v[0]}, 5U, std::nan("")); };
    CHECK_THROWS_AS(check_backward(nan, Arrays{x}, Arrays{g}), CheckError);
}

TEST_CASE("points without a derivative are found if asked for") {
    const auto relu = [](const Variables& v) -> Variables { return {F::relu(v[0])}; };
    const Options detect{.detect_nondifferentiable = true};
    const auto at = [](double x) { return Arrays{Array::from({2.0, x, -3.0}, {3})}; };
    const Arrays g = at(0.5);
    for (const double kink : {0.0, 2e-5, -3e-5}) {  // x within eps of the kink
        const Arrays x = at(kink);
        contains(error_of<NondifferentiableError>([&] { check_backward(relu, x, g, detect); }),
                 "[check_backward] [numerical_grad] outputs[0], element 1: expected a "
                 "differentiable point");
        CHECK(x[0].to_vector<double>()[1] == kink);
    }
    CHECK_NOTHROW(check_backward(relu, at(0.25), g, detect));
    CHECK_NOTHROW(check_backward(relu, at(-0.25), g, detect));
    // Without detection, differences give half of the slope at the kink, unlike relu's gradient.
    CHECK_THROWS_AS(check_backward(relu, at(0), g), CheckError);
    // Detects a step, and a function that is undefined near the point; smooth functions pass.
    const auto step = [](const Variables& v) -> Variables {
        return {as_variable(v[0].data() > 0) + v[0] * 0};
    };
    CHECK_THROWS_AS(check_backward(step, at(0), g, detect), NondifferentiableError);
    const auto root = [](const Variables& v) -> Variables { return {F::sqrt(v[0])}; };
    CHECK_THROWS_AS(check_backward(root, Arrays{Array::from({1.0, 1e-5}, {2})},
                                   Arrays{Array::from({1.0, 1.0}, {2})}, detect),
                    NondifferentiableError);
    const auto smooth = [](const Variables& v) -> Variables {
        return {F::exp(v[0]) * v[0], F::tanh(v[0])};
    };
    CHECK_NOTHROW(check_backward(smooth, at(0), Arrays{g[0], g[0]}, detect));
    // Detects a kink in a parameter, and restores the parameter.
    const Variable p(Array::from({1.0, 0.0, -1.0}, {3}));
    const auto through = [&](const Variables& v) -> Variables { return {F::relu(p) * v[0]}; };
    Options with = detect;
    with.params = {p};
    CHECK_THROWS_AS(check_backward(through, at(1), g, with), NondifferentiableError);
    CHECK(p.data().to_vector<double>() == std::vector<double>{1, 0, -1});
    CHECK_FALSE(p.grad());
    // numerical_grad() by itself.
    const Array x = Array::from({0.0, 1.0}, {2});
    const auto f = [&]() -> Arrays { return {F::abs(x)}; };
    CHECK_THROWS_AS(numerical_grad(f, Arrays{x}, Arrays{x},
                                   NumericalOptions{.eps = 1e-3, .detect_nondifferentiable = true}),
                    NondifferentiableError);
    CHECK(x.to_vector<double>() == std::vector<double>{0, 1});
}
