// Gradient checks: right gradients pass, wrong ones do not.
#include <catena/functions.hpp>
#include <catena/gradient_check.hpp>
#include <catena/operators.hpp>

#include "temporary.hpp"

#include <limits>

using namespace catena;
using namespace catena::gradient_check;
namespace F = catena::functions;
using Vars = std::vector<Variable>;
using Arrays = std::vector<Array>;

namespace {

const Array x0 = Array::from({0.5, -1.5, 2.0, 0.25}, {2, 2});
const Array x1 = Array::from({1.5, 0.5, -1.0, 3.0}, {2, 2});
const Array gy = Array::from({0.5, -1.0, 0.25, 2.0}, {2, 2});

// The value is that of product, the gradient twice as large.
std::vector<Variable> wrong(const Vars& v) {
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
    const auto product = [](const Vars& v) -> Vars { return {v[0] * v[1]}; };
    check_backward(product, Arrays{x0, x1}, Arrays{gy});
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        check_backward(product, Arrays{x0, x1}, Arrays{gy}, {.seed = seed});
        CHECK_THROWS_AS(check_backward(wrong, Arrays{x0, x1}, Arrays{gy}, {.seed = seed}),
                        CheckError);
    }
    check_backward(product, Arrays{x0.astype(Dtype::float32), x1.astype(Dtype::float32)},
                   Arrays{gy.astype(Dtype::float32)}, {.dtype = Dtype::float64});
    // Several outputs, one of them an input.
    check_backward(
        [](const Vars& v) -> Vars {
            return {v[0] * v[1], v[1], v[0] - v[1]};
        },
        Arrays{x0, x1}, Arrays{gy, gy, gy});
    CHECK_THROWS_AS(check_backward(product, Arrays{x0, x1}, Arrays{Array()}), ShapeError);
    CHECK_THROWS_AS(check_backward(product, Arrays{x0, x1}, Arrays{gy, gy}), ShapeError);
    CHECK_THROWS_AS(
        check_backward(product, Arrays{x0, x1}, Arrays{gy}, {.no_grads = {true, false}}),
        CheckError);
    check_backward([](const Vars& v) -> Vars { return {F::sum(v[0] * v[0])}; }, Arrays{x0},
                   Arrays{Array()});
}

TEST_CASE("parameters are checked too, and left as they were") {
    const Variable p(x1.copy());
    const auto function = [&](const Vars& v) -> Vars { return {v[0] * p * p}; };
    check_backward(function, Arrays{x0}, Arrays{gy}, {.params = {p}});
    CHECK(p.data().to_vector<double>() == x1.to_vector<double>());
    CHECK_FALSE(p.grad());
    const auto forgets = [&](const Vars& v) -> Vars { return {v[0] * Variable(p.data())}; };
    CHECK_THROWS_AS(check_backward(forgets, Arrays{x0}, Arrays{gy}, {.params = {p}}), CheckError);
}

TEST_CASE("check_double_backward checks the second order") {
    const auto cube = [](const Vars& v) -> Vars { return {v[0] * v[0] * v[1]}; };
    check_double_backward(cube, Arrays{x0, x1}, Arrays{gy}, Arrays{x1, gy});
    const auto linear = [](const Vars& v) -> Vars { return {v[0] + v[1]}; };
    check_double_backward(linear, Arrays{x0, x1}, Arrays{gy}, Arrays{x1, gy});
    const Variable p(x1.copy());
    check_double_backward([&](const Vars& v) -> Vars { return {v[0] * p * p}; }, Arrays{x0},
                          Arrays{gy}, Arrays{x1, gy}, {.atol = 1e-4, .rtol = 1e-3, .params = {p}});
    // A first gradient that depends on x in a way that no graph knows.
    const auto detached = [](const Vars& v) -> Vars { return {v[0] * Variable(v[0].data())}; };
    CHECK_THROWS_AS(check_double_backward(detached, Arrays{x0}, Arrays{gy}, Arrays{x1}),
                    CheckError);
}
