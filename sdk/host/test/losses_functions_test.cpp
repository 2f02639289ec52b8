// Tests losses where reference values do not reach: both overloads, edges, errors.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace catena;
namespace F = catena::functions;

namespace {

const float no_number = std::nanf("");

Array floats(std::initializer_list<float> values, const Shape& shape) {
    return Array::from<float>(values, shape);
}
Array integers(std::initializer_list<std::int32_t> values, const Shape& shape) {
    return Array::from<std::int32_t>(values, shape);
}
std::vector<float> list(const Array& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("on arrays and on variables") {
    const Array x = random::uniform({3, 4}, -2, 2), t = random::uniform({3, 4}, 0.1, 1);
    const auto compare = [](const Array& a, const Variable& b) {
        CHECK(a.shape() == b.shape());
        CHECK(list(a) == list(b.data()));
    };
    const Variable vx(x), vt(t);
    compare(F::sigmoid_cross_entropy(x, t), F::sigmoid_cross_entropy(vx, vt));
    compare(F::huber_loss(x, t, 0.5), F::huber_loss(vx, vt, 0.5));
    compare(F::smooth_l1_loss(x, t), F::smooth_l1_loss(vx, vt));
    compare(F::l1_loss(x, t, "no"), F::l1_loss(vx, vt, "no"));
    compare(F::absolute_error(x, t), F::absolute_error(vx, vt));
    compare(F::squared_error(x, t), F::squared_error(vx, vt));
    compare(F::mean_absolute_error(x, t), F::mean_absolute_error(vx, vt));
    compare(F::kl_div(x, t, "batchmean"), F::kl_div(vx, vt, "batchmean"));
    compare(F::gaussian_kl_divergence(x, t), F::gaussian_kl_divergence(vx, vt));
    compare(F::bernoulli_nll(t, x), F::bernoulli_nll(vt, vx));
    compare(F::gaussian_nll(x, t, t), F::gaussian_nll(vx, vt, vt));
    const Array labels = integers({0, 3, 2}, {3});
    compare(F::hinge(x, labels), F::hinge(vx, as_variable(labels)));
    compare(F::softmax_cross_entropy(x, labels, {}, 3),
            F::softmax_cross_entropy(vx, as_variable(labels), {}, 3));
    CHECK(F::softmax_cross_entropy(x, labels, {}, 3).item<float>() ==
          F::softmax_cross_entropy(x, integers({0, -1, 2}, {3})).item<float>());
}

TEST_CASE("softmax_cross_entropy: class weights of an Array, and losses of labels") {
    const Array x = floats({0, 0, 0, 0}, {2, 2});
    const Array t = integers({0, 1}, {2});
    const Array weight = floats({1, 3}, {2});
    CHECK(F::softmax_cross_entropy(x, t, weight).item<float>() ==
          doctest::Approx(std::log(2)));  // divided by 1 + 3
    const Array each = F::softmax_cross_entropy(x, t, weight, -1, "no");
    CHECK(each.shape() == Shape{2});
    CHECK(list(each)[1] == doctest::Approx(3 * std::log(2)));
    CHECK(F::softmax_cross_entropy_soft(x, floats({0.5, 0.5, 1, 0}, {2, 2})).item<float>() ==
          doctest::Approx(std::log(2)));
    CHECK_THROWS_WITH_AS(
        F::softmax_cross_entropy(x, t, {}, -1, "average"),
        "[catena.softmax_cross_entropy] attribute 'reduce': expected one of mean, sum, no, got "
        "'average'",
        InvalidError);
    CHECK_THROWS_WITH_AS(F::nll_loss(x, integers({0, 2}, {2})),
                         "[catena.nll_loss] t[1]: expected a label from 0 to 1, or -1 to ignore, "
                         "got 2 (x (2, 2) float32, t (2,) int32)",
                         Error);
}

TEST_CASE("sigmoid_cross_entropy: labels") {
    const Variable x(floats({0, no_number, 0, 50}, {2, 2}));
    const Variable t = as_variable(integers({1, -1, 0, 1}, {2, 2}));
    const Variable each = F::sigmoid_cross_entropy(x, t, true, "no");
    CHECK(list(each.data())[1] == 0);
    const Variable y = F::sigmoid_cross_entropy(x, t);
    CHECK(y.item<float>() == doctest::Approx(2 * std::log(2) / 3));
    y.backward();
    CHECK(list(x.grad())[0] == doctest::Approx(-0.5 / 3));
    CHECK(list(x.grad())[1] == 0);
    CHECK(list(x.grad())[2] == doctest::Approx(0.5 / 3));
    CHECK(F::sigmoid_cross_entropy(x, t, false).item<float>() ==
          doctest::Approx(2 * std::log(2) / 2));
    // All are ignored; there are none; masks are labels.
    const Array none = F::sigmoid_cross_entropy(x.data(), integers({-1, -1, -1, -1}, {2, 2}));
    CHECK(none.item<float>() == 0);
    CHECK(F::sigmoid_cross_entropy(Array::zeros({0, 2}), Array::zeros({0, 2}, Dtype::int64))
              .item<float>() == 0);
    for (const Shape& empty : {Shape{0, 2}, Shape{2, 0}, Shape{0}}) {
        const Variable scores(Array::zeros(empty));
        const Variable loss =
            F::sigmoid_cross_entropy(scores, as_variable(Array::zeros(empty, Dtype::int32)), false);
        CHECK(loss.item<float>() == 0);
        loss.backward();
        CHECK(scores.grad().shape() == empty);
    }
    CHECK(
        F::sigmoid_cross_entropy(Array::zeros({0, 2}), Array::zeros({0, 2}), false).item<float>() ==
        0);
    // A batch whose sum is beyond float16, divided by N.
    CHECK(F::sigmoid_cross_entropy(Array::full({3, 40000}, 4, Dtype::float16),
                                   Array::zeros({3, 40000}, Dtype::int32), false)
              .item<float>() == std::numeric_limits<float>::infinity());
    CHECK(F::sigmoid_cross_entropy(Array::full({40000, 3}, 4, Dtype::float16),
                                   Array::zeros({40000, 3}, Dtype::int32), false)
              .item<float>() == doctest::Approx(3 * 4.018).epsilon(1e-3));
    CHECK(
        F::sigmoid_cross_entropy(Array::zeros({2}), Array::ones({2}, Dtype::bool8)).item<float>() ==
        doctest::Approx(std::log(2)));
    // A number of labels and a sum of losses that half precision does not hold.
    const Array half = Array::full({70000}, 4, Dtype::float16);
    CHECK(F::sigmoid_cross_entropy(half, Array::zeros({70000}, Dtype::int32)).item<float>() ==
          doctest::Approx(4.018).epsilon(1e-3));
    CHECK(F::l1_loss(half, Array::zeros({70000}, Dtype::float16)).item<float>() == 4);
}

TEST_CASE("hinge: the gradient at the margin is 0") {
    for (const char* norm : {"L1", "L2"}) {
        const Variable x(floats({1, -1, 0.5, -1, 1, -1}, {2, 3}));
        F::hinge(x, as_variable(integers({0, 1}, {2})), norm, "sum").backward();
        const float slope = norm[1] == '1' ? 1 : 3;
        CHECK(list(x.grad()) == std::vector<float>{0, 0, slope, 0, 0, 0});
    }
}

TEST_CASE("kl_div: probabilities of 0; the mean of nothing") {
    const Variable x(floats({-1, -2}, {1, 2})), t(floats({0, 1}, {1, 2}));
    const Variable y = F::kl_div(x, t, "sum");
    CHECK(y.item<float>() == 2);
    y.backward();
    CHECK(list(x.grad()) == std::vector<float>{0, -1});
    for (const float g : list(t.grad())) CHECK(std::isfinite(g));
    CHECK(std::isnan(F::l1_loss(Array::zeros({0}), Array::zeros({0})).item<float>()));
    CHECK(F::l1_loss(Array::zeros({}), Array::ones({})).item<float>() == 1);
}

TEST_CASE("second order") {
    const Variable x(floats({0.5, -1.5}, {1, 2}));
    const Variable y =
        F::sigmoid_cross_entropy(x, as_variable(integers({1, 0}, {1, 2})), true, "sum");
    y.backward(false, true);
    const Variable gx = x.grad_variable();
    x.cleargrad();
    F::sum(gx).backward();
    const auto slope = [](double v) { return std::exp(-v) / std::pow(1 + std::exp(-v), 2); };
    CHECK(list(x.grad())[0] == doctest::Approx(slope(0.5)));
    CHECK(list(x.grad())[1] == doctest::Approx(slope(-1.5)));
}

TEST_CASE("refused") {
    const Array x = Array::zeros({2, 3}), t = Array::zeros({3, 2});
    CHECK_THROWS_WITH_AS(F::huber_loss(x, t, 1),
                         "[catena.huber_loss] t.shape: expected (2, 3), got (3, 2)", ShapeError);
    CHECK_THROWS_WITH_AS(
        F::huber_loss(x, x, 1, "all"),
        "[catena.huber_loss] attribute 'reduce': expected one of sum_along_second_axis, mean, sum, "
        "no, got 'all'",
        InvalidError);
    CHECK_THROWS_WITH_AS(F::kl_div(x, x, ""),
                         "[catena.kl_div] attribute 'reduce': expected one of mean, sum, no, "
                         "batchmean, got ''",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::smooth_l1_loss(x, x, -1),
                         "[catena.smooth_l1_loss] attribute 'beta': expected 0 to 1e+300, got -1",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::l1_loss(x, Array()), "[catena.l1_loss] t: expected an array, got none",
                         InvalidError);
    CHECK_THROWS_AS(F::sigmoid_cross_entropy(x, Array::zeros({2, 3}, Dtype::float64)), DtypeError);
    CHECK_THROWS_WITH_AS(F::huber_loss(Array::zeros({3}), Array::zeros({3}), 1),
                         "[catena.huber_loss] x.ndim: expected at least 2, got 1", ShapeError);
    CHECK_THROWS_AS(F::absolute_error(x, t), ShapeError);
    CHECK_THROWS_WITH_AS(F::hinge(x, integers({0, 1, 1}, {3})),
                         "[catena.hinge] t.shape: expected (2,), got (3,)", ShapeError);
    CHECK_THROWS_WITH_AS(F::hinge(x, integers({0, 1}, {2}), "l2"),
                         "[catena.hinge] attribute 'norm': expected one of L1, L2, got 'l2'",
                         InvalidError);
    for (const std::int64_t label : {std::int64_t{3}, std::int64_t{-1}, std::int64_t{1} << 32}) {
        const Array labels = Array::from<std::int64_t>({2, label}, {2});
        const std::string text = "[catena.hinge] t[1]: expected a label from 0 to 2, got ";
        CHECK_THROWS_WITH_AS(F::hinge(x, labels),
                             doctest::Contains((text + std::to_string(label)).c_str()), ValueError);
        CHECK_THROWS_AS(F::hinge(as_variable(x), as_variable(labels)), ValueError);
    }
    CHECK_THROWS_AS(F::gaussian_nll(x, x, t), ShapeError);
}
