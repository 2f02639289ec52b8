// Tests loss.catena (gradients compose functions of math, array and activation).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({LOSS_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}
template <class I>
Array labels(const Dims& shape, std::vector<I> values) {
    return Array::from<I>(values, shape);
}
double loss(const Array& x, const Array& t, const Attrs& attrs = {}) {
    return world().forward("catena.softmax_cross_entropy", {x, t}, attrs)[0].at(0);
}

}  // namespace

TEST_CASE("softmax_cross_entropy: all kernels and gradients") {
    const std::string name = "catena.softmax_cross_entropy";
    const Array x = Array::random<double>({4, 3}, 1);
    CHECK(check(world(), {name, {x, labels<std::int32_t>({4}, {0, 2, 1, 1})}}) == "");
    CHECK(check(world(), {name, {x, labels<std::int64_t>({4}, {0, -1, 1, -1})}}) == "");
    CHECK(check(world(), {name, {x, labels<std::int64_t>({4}, {-1, -1, -1, -1})}}) == "");
    CHECK(check(world(),
                {name, {Array::random<double>({2, 40}, 1), labels<std::int32_t>({2}, {39, 17})}}) ==
          "");
    CHECK(check(world(), {name,
                          {Array::random<double>({2, 3, 2, 2}, 1),
                           labels<std::int32_t>({2, 2, 2}, {0, 1, 2, -1, 2, 1, 0, 0})}}) == "");
    CHECK(check(world(), {name,
                          {x, labels<std::int32_t>({4}, {0, 2, 1, 1})},
                          {set("ignore_label", std::int64_t{2})}}) == "");
}

TEST_CASE("softmax_cross_entropy: values") {
    const Array x = Array::random<double>({3, 4}, 2);
    const std::vector<std::int32_t> t = {3, 0, 2};
    double sum = 0;
    for (int i = 0; i < 3; ++i) {
        double z = 0;
        for (int k = 0; k < 4; ++k) z += std::exp(x.at(4 * i + k));
        sum += std::log(z) - x.at(4 * i + t[static_cast<std::size_t>(i)]);
    }
    CHECK(loss(x, labels({3}, t)) == doctest::Approx(sum / 3).epsilon(1e-12));
    const Array large = Array::from<float>({-1000, 1, 1e4f, 0}, {2, 2});
    CHECK(loss(large, labels<std::int32_t>({2}, {0, 0})) == doctest::Approx(500.5));
    CHECK(loss(large, labels<std::int32_t>({2}, {1, 0})) == 0);
    CHECK(loss(Array::random<float>({0, 3}, 1), labels<std::int32_t>({0}, {})) == 0);
    CHECK(loss(x, labels<std::int32_t>({3}, {-1, -1, -1})) == 0);
    const Array nan = Array::from<float>({std::nanf(""), 1}, {1, 2});
    CHECK(std::isnan(loss(nan, labels<std::int32_t>({1}, {1}))));
    // The scores of an ignored row do not matter, even if they are NaN.
    const auto y =
        world().forward("catena.softmax_cross_entropy", {nan, labels<std::int32_t>({1}, {-1})});
    CHECK(y[0].at(0) == 0);
    const auto gx =
        world().backward("catena.softmax_cross_entropy", {nan, labels<std::int32_t>({1}, {-1})}, y,
                         {Array::from<float>({1}, {})});
    CHECK(gx[0].values<float>() == std::vector<float>{0, 0});
}

TEST_CASE("softmax_cross_entropy: gradients of large scores") {
    // Large scores that differ by 1, or by the dtype's spacing: only the difference matters.
    using catena::plugin::BFloat16;
    using catena::plugin::Float16;
    const std::string name = "catena.softmax_cross_entropy";
    for (const catena_dtype dtype :
         {dtype_of<float>(), dtype_of<double>(), dtype_of<Float16>(), dtype_of<BFloat16>()})
        for (const double m : {0.0, 1e3, -1e3, 1e4, 1e5, 1e6, -1e6, 1e7})
            for (const Dims& shape : {Dims{1, 2}, Dims{1, 2, 1, 1}, Dims{1, 2, 3, 5}}) {
                if (std::abs(m) > 3e4 && catena::plugin::same(dtype, dtype_of<Float16>())) continue;
                CAPTURE(m);
                CAPTURE(shape.size());
                const std::int64_t n = shape.size() == 2 ? 1 : shape[2] * shape[3];
                Array x(shape, dtype);
                for (std::int64_t i = 0; i < 2 * n; ++i) x.set(i, i < n ? m : m + 1);
                const double p = 1 / (1 + std::exp(x.at(n) - x.at(0)));
                const bool half = dtype.bits == 16;
                if (!half) CHECK(p == doctest::Approx(0.2689414213699951).epsilon(1e-14));
                const Dims rest(shape.begin() + 2, shape.end());
                Dims of_t = {1};
                of_t.insert(of_t.end(), rest.begin(), rest.end());
                Array t(of_t, dtype_of<std::int32_t>());
                for (std::int64_t i = 0; i < n; ++i) t.set(i, 0);
                Array gy({}, dtype);
                gy.set(0, 1);
                const auto y = world().forward(name, {x, t});
                const double tolerance = half ? 1e-2 : dtype.bits == 32 ? 1e-6 : 1e-14;
                CHECK(y[0].at(0) == doctest::Approx(-std::log(p)).epsilon(tolerance));
                const Array fused = world().backward(name, {x, t}, y, {gy})[0];
                const Array composed = world().gradient(name, {x, t}, y, {gy, Array()})[0];
                double worst[2] = {};
                for (std::int64_t i = 0; i < 2 * n; ++i) {
                    const double right = (i < n ? p - 1 : 1 - p) / static_cast<double>(n);
                    worst[0] = std::max(worst[0], std::abs(fused.at(i) - right));
                    worst[1] = std::max(worst[1], std::abs(composed.at(i) - right));
                }
                CHECK(worst[0] < tolerance);
                CHECK(worst[1] < tolerance);
            }
}

TEST_CASE("softmax_cross_entropy: many rows") {
    const Array x = Array::random<float>({5000, 11}, 1, -4, 4);
    Array t({5000}, dtype_of<std::int32_t>());
    for (std::int32_t i = 0; i < 5000; ++i) t.data<std::int32_t>()[i] = i % 12 - 1;
    const auto y = world().forward("catena.softmax_cross_entropy", {x, t});
    Options options;
    options.threads = 3;
    CHECK(world().forward("catena.softmax_cross_entropy", {x, t}, {}, options) == y);
    CHECK(y[0].at(0) == doctest::Approx(loss(x.to(dtype_of<double>()), t)).epsilon(1e-6));
}

TEST_CASE("labels out of range") {
    const Array x = Array::random<float>({2, 3, 2}, 1);
    CHECK_THROWS_WITH(
        loss(x, labels<std::int32_t>({2, 2}, {0, -1, 1, 3})),
        "[catena.softmax_cross_entropy] t[1, 1]: expected a label from 0 to 2, or -1 to "
        "ignore, got 3");
    CHECK_THROWS_WITH(loss(Array::random<float>({1, 3}, 1), labels<std::int64_t>({1}, {-2})),
                      "[catena.softmax_cross_entropy] t[0]: expected a label from 0 to 2, or -1 to "
                      "ignore, got -2");
    CHECK_THROWS_WITH(loss(x, labels<std::int32_t>({2}, {0, 1})),
                      "[catena.softmax_cross_entropy] t.shape: expected (2, 2), got (2,)");
    CHECK_THROWS_WITH(loss(Array::random<float>({3}, 1), labels<std::int32_t>({3}, {0, 1, 1})),
                      "[catena.softmax_cross_entropy] x.ndim: expected at least 2, got 1");
}

TEST_CASE("no classes") {
    CHECK_THROWS_WITH(
        loss(Array::random<float>({2, 0}, 1), labels<std::int32_t>({2}, {-1, -1})),
        "[catena.softmax_cross_entropy] x.shape[1]: expected at least 1 class, got 0");
}

TEST_CASE("accuracy") {
    const auto accuracy = [](const Array& y, const Array& t) {
        return world().forward("catena.accuracy", {y, t})[0].at(0);
    };
    const Array y = Array::from<float>({1, 2, 0, 5, 5, 1, 0, 0, 1, 3, 2, 1}, {4, 3});
    CHECK(accuracy(y, labels<std::int32_t>({4}, {1, 0, 2, 1})) == 0.75);
    CHECK(accuracy(y, labels<std::int64_t>({4}, {1, 1, -1, -1})) == 0.5);  // takes the first max
    CHECK(accuracy(y, labels<std::int64_t>({4}, {-1, -1, -1, -1})) == 0);
    CHECK(std::isnan(accuracy(Array::random<float>({0, 3}, 1), labels<std::int32_t>({0}, {}))));
    const Array nan = Array::from<float>({1, std::nanf(""), 2}, {1, 3});
    CHECK(accuracy(nan, labels<std::int32_t>({1}, {1})) == 1);
    CHECK(check(world(), {"catena.accuracy",
                          {Array::random<double>({3, 4, 2}, 1),
                           labels<std::int32_t>({3, 2}, {0, 1, 2, 3, 0, 1})}}) == "");
}

TEST_CASE("accuracy: labels out of range") {
    const Array y = Array::random<float>({2, 3}, 1);
    const auto accuracy = [&](std::vector<std::int32_t> t) {
        return world().forward("catena.accuracy", {y, labels({2}, t)})[0].at(0);
    };
    CHECK_THROWS_WITH(
        accuracy({2, 3}),
        "[catena.accuracy] t[1]: expected a label from 0 to 2, or -1 to ignore, got 3");
    CHECK_THROWS_WITH(
        accuracy({-2, 0}),
        "[catena.accuracy] t[0]: expected a label from 0 to 2, or -1 to ignore, got -2");
    CHECK_NOTHROW(accuracy({-1, 2}));
}

TEST_CASE("mean_squared_error") {
    for (const Dims& shape : {Dims{}, Dims{3, 5}, Dims{2, 1, 40}})
        CHECK(check(world(),
                    {"catena.mean_squared_error",
                     {Array::random<double>(shape, 1), Array::random<double>(shape, 2)}}) == "");
    const Array a = Array::from<double>({1, 2, 3, 4}, {2, 2});
    const Array b = Array::from<double>({0, 2, 5, 1}, {2, 2});
    CHECK(world().forward("catena.mean_squared_error", {a, b})[0].at(0) == 14.0 / 4);
    const Array big = Array::random<float>({300, 1000}, 1);
    const Array zero = Array::from<float>(std::vector<float>(300000, 0), {300, 1000});
    double sum = 0;
    for (std::int64_t i = 0; i < big.size(); ++i) sum += big.at(i) * big.at(i);
    CHECK(world().forward("catena.mean_squared_error", {big, zero})[0].at(0) ==
          doctest::Approx(sum / 300000).epsilon(1e-6));
    CHECK(std::isnan(world()
                         .forward("catena.mean_squared_error",
                                  {Array::random<float>({0}, 1), Array::random<float>({0}, 1)})[0]
                         .at(0)));
    CHECK_THROWS_WITH(
        world().forward("catena.mean_squared_error", {a, Array::random<double>({2}, 1)}),
        "[catena.mean_squared_error] x1.shape: expected (2, 2), got (2,)");
}
