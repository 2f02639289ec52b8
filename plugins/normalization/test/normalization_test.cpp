// Tests normalization.catena (gradients compose functions of math and array).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <limits>

using namespace catena::testing;

namespace {

World& world() {
    static World world({NORMALIZATION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

const std::vector<Dims> shapes = {{6, 4},       {1, 3},        {3, 2, 5}, {4, 3, 5, 5},  {2, 70},
                                  {5, 1, 1, 1}, {2, 2, 33, 4}, {9, 130},  {2, 3, 70, 70}};

Array random(const Dims& shape, unsigned seed) { return Array::random<double>(shape, seed); }
Array positive(const Dims& shape, unsigned seed) {
    Array x = random(shape, seed);
    for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, 1 + x.at(i) / 2);
    return x;
}

// Calls f(channel, element) for all elements of x.
template <class F>
void each(const Dims& shape, const F& f) {
    std::int64_t rest = 1;
    for (std::size_t d = 2; d < shape.size(); ++d) rest *= shape[d];
    for (std::int64_t i = 0; i < shape[0] * shape[1] * rest; ++i) f(i / rest % shape[1], i);
}

}  // namespace

TEST_CASE("batch_normalization: values and statistics by the definition") {
    for (const Dims& shape : shapes) {
        const Dims channels = {shape[1]};
        const Array x = random(shape, 1);
        const Array gamma = random(channels, 2);
        const Array beta = random(channels, 3);
        const auto y = world().forward("catena.batch_normalization", {x, gamma, beta});
        const auto n = static_cast<double>(x.size() / shape[1]);
        std::vector<double> mean(static_cast<std::size_t>(shape[1]));
        std::vector<double> var(mean.size());
        each(shape, [&](auto c, auto i) { mean[static_cast<std::size_t>(c)] += x.at(i) / n; });
        each(shape, [&](auto c, auto i) {
            const double d = x.at(i) - mean[static_cast<std::size_t>(c)];
            var[static_cast<std::size_t>(c)] += d * d / n;
        });
        Array expected(shape, catena::plugin::dtype_of<double>());
        each(shape, [&](auto c, auto i) {
            const auto k = static_cast<std::size_t>(c);
            expected.set(i,
                         gamma.at(c) * (x.at(i) - mean[k]) / std::sqrt(var[k] + 1e-5) + beta.at(c));
        });
        CHECK(compare(y[0], expected, {1e-10, 1e-10}) == "");
        CHECK(compare(y[1], Array::from<double>(mean, channels), {1e-12, 1e-12}) == "");
        CHECK(compare(y[2], Array::from<double>(var, channels), {1e-12, 1e-12}) == "");
    }
}

TEST_CASE("batch_normalization: gradients") {
    for (const Dims& shape : shapes) {
        if (shape[0] * shape[1] > 200 || shape.back() == 70) continue;  // slow finite differences
        const Dims channels = {shape[1]};
        CHECK(check(world(), {"catena.batch_normalization",
                              {random(shape, 1), random(channels, 2), random(channels, 3)},
                              {set("eps", 0.1)}}) == "");
    }
}

TEST_CASE("batch_normalization: a large mean does not spoil the variance") {
    Array x = random({64, 2, 9}, 1).to(catena::plugin::dtype_of<float>());
    for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, x.at(i) + 1000);
    const Array one = Array::from<float>({1, 1}, {2});
    const auto y = world().forward("catena.batch_normalization", {x, one, one});
    for (std::int64_t c = 0; c < 2; ++c) {
        double mean = 0;
        double var = 0;
        each({64, 2, 9}, [&](auto k, auto i) { mean += k == c ? x.at(i) / 576 : 0; });
        each({64, 2, 9}, [&](auto k, auto i) {
            var += k == c ? (x.at(i) - mean) * (x.at(i) - mean) / 576 : 0;
        });
        CHECK(y[2].at(c) == doctest::Approx(var).epsilon(1e-4));
    }
}

TEST_CASE("batch_normalization: edges") {
    const Array none({0, 2, 3}, catena::plugin::dtype_of<float>());
    const Array two = Array::from<float>({1, 2}, {2});
    const auto y = world().forward("catena.batch_normalization", {none, two, two});
    CHECK(y[0].shape() == Dims{0, 2, 3});
    CHECK(y[1].at(0) == 0);
    // With one row, every value is the mean of its channel.
    const Array row = Array::from<float>({5, -7}, {1, 2});
    CHECK(world().forward("catena.batch_normalization", {row, two, two})[0].at(1) == 2);
    CHECK_THROWS_WITH(world().forward("catena.batch_normalization", {two, two, two}),
                      "[catena.batch_normalization] x.ndim: expected at least 2, got 1");
    CHECK_THROWS_WITH(
        world().forward("catena.batch_normalization", {row, two, Array::from<float>({1}, {1})}),
        "[catena.batch_normalization] beta.shape: expected (2,), got (1,)");
}

TEST_CASE("fixed_batch_normalization") {
    for (const Dims& shape : shapes) {
        const Dims channels = {shape[1]};
        const Array x = random(shape, 1);
        const Array gamma = random(channels, 2);
        const Array beta = random(channels, 3);
        const Array mean = random(channels, 4);
        const Array var = positive(channels, 5);
        Array expected(shape, catena::plugin::dtype_of<double>());
        each(shape, [&](auto c, auto i) {
            expected.set(
                i, gamma.at(c) * (x.at(i) - mean.at(c)) / std::sqrt(var.at(c) + 0.01) + beta.at(c));
        });
        const Attrs attrs = {set("eps", 0.01)};
        const std::vector<Array> inputs = {x, gamma, beta, mean, var};
        CHECK(compare(world().forward("catena.fixed_batch_normalization", inputs, attrs)[0],
                      expected, {1e-12, 1e-12}) == "");
        if (x.size() < 1000)
            CHECK(check(world(), {"catena.fixed_batch_normalization", inputs, attrs}) == "");
    }
}

TEST_CASE("local_response_normalization") {
    struct Rule {
        std::int64_t n;
        double k, alpha, beta;
    };
    for (const Rule& r : {Rule{5, 2, 1e-4, 0.75}, Rule{3, 1, 0.5, 0.5}, Rule{4, 2, 0.1, 1},
                          Rule{1, 1, 1, 0.75}, Rule{31, 1, 0.1, 2}}) {
        for (const Dims& shape : {Dims{2, 7, 3}, Dims{1, 3}, Dims{2, 6, 9, 9}, Dims{0, 2, 2}}) {
            const Array x = random(shape, 6);
            std::int64_t rest = 1;
            for (std::size_t d = 2; d < shape.size(); ++d) rest *= shape[d];
            Array expected(shape, catena::plugin::dtype_of<double>());
            each(shape, [&](auto c, auto i) {
                double sum = 0;
                for (std::int64_t j = c - r.n / 2; j <= c + r.n / 2; ++j) {
                    if (j < 0 || j >= shape[1]) continue;
                    const double v = x.at(i + (j - c) * rest);
                    sum += v * v;
                }
                expected.set(i, x.at(i) * std::pow(r.k + r.alpha * sum, -r.beta));
            });
            const Attrs attrs = {set("n", r.n), set("k", r.k), set("alpha", r.alpha),
                                 set("beta", r.beta)};
            CHECK(compare(world().forward("catena.local_response_normalization", {x}, attrs)[0],
                          expected, {1e-12, 1e-12}) == "");
            CHECK(check(world(), {"catena.local_response_normalization", {x}, attrs}) == "");
        }
    }
    // The factor of x is the constant 0, and so is the composed gradient.
    const Array x = random({1, 3}, 6);
    const Attrs large = {set("k", std::numeric_limits<double>::infinity()), set("alpha", 0.0)};
    const Attrs zero = {set("k", 0.0), set("alpha", 0.0), set("beta", -1.0)};
    for (const Attrs& attrs : {large, zero}) {
        const Array y = world().forward("catena.local_response_normalization", {x}, attrs)[0];
        const Array gx =
            world().gradient("catena.local_response_normalization", {x}, {y}, {x}, attrs)[0];
        CHECK(gx.numbers() == std::vector<double>{0, 0, 0});
    }
}

TEST_CASE("running_update: a weighted mean, in place") {
    const Array average = Array::from<float>({1, 2, -4}, {3});
    const Array value = Array::from<float>({3, 0, 8}, {3});
    const auto updated = [&](double share, double scale) {
        return world().forward("catena.running_update", {average, value},
                               {set("share", share), set("scale", scale)})[0];
    };
    CHECK(updated(0.75, 2) == Array::from<float>({2.25, 1.5, 1}, {3}));
    CHECK(updated(1, 2) == average);
    CHECK(updated(0, 1) == value);
    CHECK_THROWS_WITH(updated(1.5, 1), doctest::Contains("share"));
    CHECK_THROWS_WITH(
        world().forward("catena.running_update", {average, Array::from<float>({1, 2}, {2})},
                        {set("share", 0.5)}),
        "[catena.running_update] value.shape: expected (3,), got (2,)");
}

TEST_CASE("no walk over images without pixels") {
    constexpr std::int64_t huge = std::int64_t{1} << 40;
    const auto shape = [](const char* name, const std::vector<Array>& x) {
        return world().forward(name, x)[0].shape();
    };
    const Array gamma = Array::constant({2}, dtype_of<float>(), 1);
    const Array none({huge, 2, 0}, dtype_of<float>()), no_channels({huge, 0, 3}, dtype_of<float>());
    CHECK(shape("catena.batch_normalization", {none, gamma, gamma}) == none.shape());
    CHECK(shape("catena.local_response_normalization", {none}) == none.shape());
    CHECK(shape("catena.local_response_normalization", {no_channels}) == no_channels.shape());
}
