// Tests random numbers and noise.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

using namespace catena;
namespace F = catena::functions;

namespace {

std::vector<double> list(const Array& x) { return x.astype(Dtype::float64).to_vector<double>(); }
double mean(const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
double variance(std::vector<double> x) {
    const double m = mean(x);
    for (double& v : x) v = (v - m) * (v - m);
    return mean(x);
}
constexpr std::int64_t many = 100000;

}  // namespace

TEST_CASE("uniform and normal: moments, dtypes, the stream") {
    seed(1);
    const Array u = F::uniform({many}, -1, 3);
    CHECK(std::abs(mean(list(u)) - 1) < 0.015);
    CHECK(std::abs(variance(list(u)) - 16.0 / 12) < 0.02);
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
        const Array n = F::normal({2, many / 2}, 2, 0.5, dtype);
        CHECK(n.dtype() == dtype);
        CHECK(n.shape() == Shape{2, many / 2});
        CHECK(std::abs(mean(list(n)) - 2) < 0.01);
        CHECK(std::abs(variance(list(n)) - 0.25) < 0.01);
    }
    seed(1);
    CHECK(list(F::uniform({many}, -1, 3)) == list(u));
    CHECK(list(F::uniform({many}, -1, 3)) != list(u));
    CHECK(F::normal({}).ndim() == 0);
    CHECK(F::normal({0, 3}).size() == 0);
    CHECK(F::uniform({3}, 0, 1, Dtype::float32, Device::get("cpu:1")).device() ==
          Device::get("cpu:1"));
    CHECK_THROWS_AS(F::normal({3}, 0, 1, Dtype::int32), DtypeError);
}

TEST_CASE("gaussian: moments and gradients") {
    seed(1);
    const Variable m(Array::full({many}, 3)), v(Array::full({many}, std::log(4)));
    const Variable y = F::gaussian(m, v);
    CHECK(std::abs(mean(list(y.data())) - 3) < 0.03);
    CHECK(std::abs(variance(list(y.data())) - 4) < 0.08);
    F::sum(y).backward();
    CHECK(list(m.grad()) == std::vector<double>(many, 1));
    const auto sample = list(y.data()), slope = list(v.grad());
    for (std::size_t i = 0; i < 100; ++i)
        CHECK(slope[i] == doctest::Approx((sample[i] - 3) / 2).epsilon(1e-4));
    seed(1);
    CHECK(list(F::gaussian(m.data(), v.data())) == sample);
    CHECK_THROWS_WITH_AS(F::gaussian(Array::zeros({2}), Array::zeros({3})),
                         "[catena.gaussian] ln_var.shape: expected (2,), got (3,)", ShapeError);
    CHECK_THROWS_AS(F::gaussian(Array::zeros({2}), Array()), InvalidError);
}

TEST_CASE("bernoulli: frequencies; certain events are certain") {
    seed(1);
    for (const Dtype dtype : {Dtype::float16, Dtype::float32, Dtype::float64}) {
        for (const double p : {0.0, 0.1, 0.75, 1.0}) {
            const Array y = F::bernoulli(Array::full({many}, p, dtype));
            CHECK(y.dtype() == dtype);
            const auto values = list(y);
            for (const double v : values) REQUIRE((v == 0 || v == 1));
            if (p == 0 || p == 1) CHECK(mean(values) == p);
            else CHECK(std::abs(mean(values) - p) < 0.006);
        }
    }
    const Variable p(Array::full({3}, 0.5));
    CHECK_FALSE(F::bernoulli(p).requires_grad());
}

TEST_CASE("gumbel_softmax: its largest element is a sample of the distribution") {
    seed(1);
    const std::vector<double> share = {0.1, 0.2, 0.7};
    std::vector<float> log_pi;
    for (std::int64_t i = 0; i < many; ++i)
        for (const double s : share) log_pi.push_back(static_cast<float>(std::log(s) + 5));
    const Variable x(Array::from<float>(log_pi, {many, 3}));
    const Variable y = F::gumbel_softmax(x, 0.5);
    const auto values = list(y.data());
    double found[3] = {};
    for (std::size_t i = 0; i < many; ++i) {
        const auto row = values.begin() + static_cast<std::ptrdiff_t>(3 * i);
        REQUIRE(row[0] + row[1] + row[2] == doctest::Approx(1));
        found[std::max_element(row, row + 3) - row] += 1.0 / many;
    }
    for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(found[c] - share[c]) < 0.006);
    F::sum(y * y).backward();
    for (const double g : list(x.grad())) REQUIRE(std::isfinite(g));
    const Array half = F::gumbel_softmax(Array::zeros({1000, 50}, Dtype::float16), 0.1, -1);
    CHECK(half.dtype() == Dtype::float16);
    for (const double v : list(half)) REQUIRE(std::isfinite(v));
    CHECK(F::gumbel_softmax(Array::zeros({4, 2}), 1, 0).shape() == Shape{4, 2});
    CHECK_THROWS_WITH_AS(F::gumbel_softmax(Array::zeros({2, 2}), 0),
                         "[catena.gumbel_softmax] tau: expected more than 0, got 0.0",
                         InvalidError);
}

TEST_CASE("multinomial on arrays") {
    seed(1);
    const Array p = Array::from<float>({0, 1, 0, 2, 1, 1}, {2, 3});
    const Array y = F::multinomial(p, 1000, true);
    CHECK(y.shape() == Shape{2, 1000});
    CHECK(y.dtype() == Dtype::int64);
    const auto classes = list(y);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(classes[i] == 1);
    CHECK(F::multinomial(p).shape() == Shape{2, 1});
}
