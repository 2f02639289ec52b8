// Tests reductions that are compositions. Reference values are in golden/reductions.py.
#include <doctest/doctest.h>
#include <catena/catena.hpp>

#include <cmath>
#include <limits>

using namespace catena;
namespace F = catena::functions;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> gradient(const Variable& x, const Variable& y, bool composed) {
    x.cleargrad();
    F::sum(y).backward(false, composed);
    return x.grad().to_vector<float>();
}

}  // namespace

TEST_CASE("the gradients of std and norm are 0 where they are 0") {
    for (const bool composed : {false, true}) {
        const Variable x(Array::from<float>({0, 0, 3, 4}, {2, 2}));
        CHECK(F::norm(x, 2, 1).data().to_vector<float>() == std::vector<float>{0, 5});
        const std::vector<float> g = gradient(x, F::norm(x, 2, 1), composed);
        CHECK(g[0] == 0);
        CHECK(g[1] == 0);
        CHECK(g[2] == doctest::Approx(0.6));
        const Variable same(Array::from<float>({2, 2, 2}, {3}));
        CHECK(gradient(same, F::std(same), composed) == std::vector<float>(3, 0));
    }
}

TEST_CASE("norm of half precision, infinities and NaN") {
    const Array half = Array::from<float>({30000, 40000}, {2}).astype(Dtype::float16);
    CHECK(F::norm(half).dtype() == Dtype::float16);
    CHECK(F::norm(half).astype(Dtype::float32).item<float>() ==
          doctest::Approx(50000).epsilon(1e-3));
    for (const double ord : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
        CHECK(F::norm(Array::from<float>({1, -inf}, {2}), ord).item<float>() == inf);
        CHECK(std::isnan(F::norm(Array::from<float>({1, not_a_number}, {2}), ord).item<float>()));
    }
    CHECK(F::norm(Array::from<float>({}, {0})).item<float>() == 0);
    CHECK_THROWS_WITH_AS(F::norm(half.astype(Dtype::float32), 3),
                         "[catena.norm] ord: expected 1, 2 or inf, got 3.0", InvalidError);
}

TEST_CASE("std") {
    const Array x = Array::from<float>({1, 2, 4}, {3});
    CHECK(F::std(x, {}, true, 1).item<float>() == doctest::Approx(std::sqrt(7.0 / 3)));
    CHECK(F::std(x, {}, true).shape() == Shape{1});
    CHECK(std::isnan(F::std(Array::from<float>({1}, {1}), {}, false, 1).item<float>()));
}

TEST_CASE("std and average of half precision whose parts are beyond its range") {
    const Array x = Array::from<float>({1000, -1000, 2000, -2000}, {4}).astype(Dtype::float16);
    CHECK(F::std(x).dtype() == Dtype::float16);
    CHECK(F::std(x).item<double>() == doctest::Approx(std::sqrt(2.5e6)).epsilon(1e-3));
    const Array many = Array::full({1000}, 1000, Dtype::float16);
    const Variable w(Array::full({1000}, 100, Dtype::float16));
    const Variable y = F::average(Variable(many), {}, w);
    CHECK(y.dtype() == Dtype::float16);
    CHECK(y.item<float>() == 1000);
    y.backward();
    CHECK(w.grad().dtype() == Dtype::float16);
}

TEST_CASE("wrong weights of an average") {
    const Array x = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
    const Array w = Array::from<float>({1, 3}, {2});
    CHECK(F::average(x, 0, w).to_vector<float>() == std::vector<float>{3.25f, 4.25f, 5.25f});
    CHECK(F::average(x, 0, w, true).shape() == Shape{1, 3});
    CHECK_THROWS_WITH_AS(
        F::average(x, 1, w),
        "[catena.average] weights.shape: expected (2, 3) or the extents of axis (1,), got (2,)",
        ShapeError);
    CHECK_THROWS_WITH_AS(
        F::average(x, {}, w),
        "[catena.average] weights.shape: expected (2, 3) or the extents of axis (), got (2,)",
        ShapeError);
    CHECK_THROWS_AS(F::average(x, 2, w), ShapeError);
    CHECK_THROWS_AS(F::average(x, {0, 0}, F::matmul(x, x, false, true)), Error);
}

TEST_CASE("norm: squares neither overflow nor vanish") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
        CAPTURE(name(dtype));
        const std::vector<double> scales = dtype == Dtype::float16   ? std::vector{4096., 0x1p-14}
                                           : dtype == Dtype::float64 ? std::vector{1e300, 1e-300}
                                                                     : std::vector{1e30, 1e-30};
        for (const double scale : scales) {
            const Array x = Array::from({3 * scale, -4 * scale, 0.0, 0.0}, {2, 2}).astype(dtype);
            const double eps = item_size(dtype) == 2 ? 0.01 : 1e-6;
            CHECK(F::norm(x, 2, 1).to_vector<double>()[0] ==
                  doctest::Approx(5 * scale).epsilon(eps).scale(0));
            const Variable v(x);
            F::sum(F::norm(v, 2, 1)).backward();
            const auto gx = v.grad().to_vector<double>();
            CHECK(gx[0] == doctest::Approx(0.6).epsilon(eps));
            CHECK(gx[1] == doctest::Approx(-0.8).epsilon(eps));
            CHECK(gx[2] == 0);
        }
    }
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(F::norm(Array::from({1.0, -inf}, {2})).item<double>() == inf);
    CHECK(std::isnan(F::norm(Array::from({1.0, std::nan("")}, {2})).item<double>()));
    CHECK(F::norm(Array::zeros({0}, Dtype::float64)).item<double>() == 0);
    CHECK(F::norm(Array::zeros({2, 0}), 2, 1).to_vector<float>() == std::vector<float>{0, 0});
    CHECK(F::norm(Array::full({2}, 1e-45f)).item<float>() == 1e-45f);
    CHECK(F::norm(Array::ones({2, 3}), 2, 1, true).shape() == Shape{2, 1});
}

TEST_CASE("sort") {
    const Array x = Array::from<float>({3, not_a_number, 1, 3}, {4});
    CHECK(F::argsort(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 0, 3, 1});
    CHECK(F::argsort(x, 0, true).to_vector<std::int64_t>() ==
          std::vector<std::int64_t>{1, 0, 3, 2});
    CHECK(F::sort(Array::from<std::int32_t>({3, -1, 2}, {3})).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{-1, 2, 3});
    CHECK_THROWS_WITH_AS(F::sort(x, 1), "[catena.sort] axis: expected from -1 to 0, got 1",
                         ShapeError);
    CHECK_THROWS_AS(F::argsort(x, -2), ShapeError);
    CHECK_THROWS_WITH_AS(F::sort(Variable()), "[catena.sort] x: expected an array, got none",
                         InvalidError);
}

TEST_CASE("sums of 10^8 numbers are accurate to 1e-6") {
    constexpr std::int64_t n = 100'000'000;
    const Array x = Array::full({n}, 0.1);
    const double exact = static_cast<double>(n) * static_cast<double>(0.1F);
    CHECK(F::sum(x).item<float>() == doctest::Approx(exact).epsilon(1e-6));
    const auto halves = F::sum(x.reshape({2, n / 2}), {1}).to_vector<double>();
    CHECK(halves[1] == doctest::Approx(exact / 2).epsilon(1e-6));
    const auto columns = F::sum(x.reshape({n / 2, 2}), {0}).to_vector<double>();
    CHECK(columns[1] == doctest::Approx(exact / 2).epsilon(1e-6));
}

TEST_CASE("sums and means of 10^8 different numbers of both signs are accurate to 1e-6") {
    constexpr std::int64_t n = 100'000'000;
    const Array x = Array::empty({n}, Dtype::float32, Device::get("cpu"));
    const std::span<float> values = x.host<float>();
    std::int64_t exact[2][2] = {};  // of each half, and of each column if the rows have two numbers
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const auto whole = static_cast<std::int32_t>(state >> 40) - (1 << 22);  // -2^22 to 3 * 2^22
        values[static_cast<std::size_t>(i)] = static_cast<float>(whole) * 0x1p-22F;
        exact[i / (n / 2)][i % 2] += whole;
    }
    const auto near = [](std::int64_t whole, std::int64_t count) {
        return doctest::Approx(static_cast<double>(whole) * 0x1p-22 / static_cast<double>(count))
            .epsilon(1e-6);
    };
    const std::int64_t first = exact[0][0] + exact[0][1], second = exact[1][0] + exact[1][1];
    CHECK(F::sum(x).item<float>() == near(first + second, 1));
    CHECK(F::mean(x).item<float>() == near(first + second, n));
    const Array halves = x.reshape({2, n / 2}), pairs = x.reshape({n / 2, 2});
    const auto check = [&](const Array& y, std::int64_t a, std::int64_t b, std::int64_t count) {
        const auto got = y.to_vector<double>();
        CHECK(got[0] == near(a, count));
        CHECK(got[1] == near(b, count));
    };
    check(F::sum(halves, {1}), first, second, 1);
    check(F::mean(halves, {1}), first, second, n / 2);
    check(F::sum(pairs, {0}), exact[0][0] + exact[1][0], exact[0][1] + exact[1][1], 1);
    check(F::mean(pairs, {0}), exact[0][0] + exact[1][0], exact[0][1] + exact[1][1], n / 2);
}
