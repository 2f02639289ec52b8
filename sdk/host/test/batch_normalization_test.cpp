// Tests of BatchNormalization: modes and running statistics, compared with sums in double.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cmath>

using namespace catena;

namespace {

struct Statistics {
    std::vector<double> mean = std::vector<double>(2, 0.0), unbiased = std::vector<double>(2, 0.0);
};

// Returns the mean and the unbiased variance of each column of x (N, 2).
Statistics statistics_of(const Array& x) {
    Statistics s;
    const auto v = x.to_vector<double>();
    const double n = static_cast<double>(v.size() / 2);
    for (std::size_t i = 0; i < v.size(); ++i) s.mean[i % 2] += v[i] / n;
    for (std::size_t i = 0; i < v.size(); ++i)
        s.unbiased[i % 2] += (v[i] - s.mean[i % 2]) * (v[i] - s.mean[i % 2]) / (n - 1);
    return s;
}

Array batch(int k) {
    std::vector<float> v(10);
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<float>(std::sin(static_cast<double>(i) * 1.7 + k) * (k + 1) + k);
    return Array::from(v, {5, 2});
}

void check_close(const Array& array, const std::vector<double>& expected) {
    const auto v = array.to_vector<double>();
    REQUIRE(v.size() == expected.size());
    for (std::size_t i = 0; i < v.size(); ++i)
        CHECK(v[i] == doctest::Approx(expected[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("training normalises by the minibatch and keeps running statistics") {
    links::BatchNormalization link(2);
    check_close(link.gamma.data(), {1, 1});
    check_close(link.beta.data(), {0, 0});
    check_close(link.avg_mean, {0, 0});
    check_close(link.avg_var, {1, 1});
    std::vector<double> mean(2, 0.0), var(2, 1.0);
    for (int k = 0; k < 3; ++k) {
        const Array x = batch(k);
        const Variable y = link(as_variable(x));
        const Statistics s = statistics_of(x);
        for (std::size_t c = 0; c < 2; ++c) {
            mean[c] = 0.9 * mean[c] + 0.1 * s.mean[c];
            var[c] = 0.9 * var[c] + 0.1 * s.unbiased[c];
        }
        const double expected =
            (x.to_vector<double>()[3] - s.mean[1]) / std::sqrt(s.unbiased[1] * 4 / 5 + 2e-5);
        CHECK(y.data().to_vector<double>()[3] == doctest::Approx(expected).epsilon(1e-4));
    }
    check_close(link.avg_mean, mean);
    check_close(link.avg_var, var);
}

TEST_CASE("test mode takes the running statistics and leaves them") {
    links::BatchNormalization link(2, 0.5);
    (void)link(as_variable(batch(1)));
    const auto mean = link.avg_mean.to_vector<double>();
    const auto var = link.avg_var.to_vector<double>();
    const Array x = batch(2);
    const auto check_test = [&](const Variable& y) {
        for (std::size_t i = 0; i < 10; ++i)
            CHECK(y.data().to_vector<double>()[i] ==
                  doctest::Approx((x.to_vector<double>()[i] - mean[i % 2]) /
                                  std::sqrt(var[i % 2] + 2e-5))
                      .epsilon(1e-4));
        check_close(link.avg_mean, mean);
        check_close(link.avg_var, var);
    };
    check_test(link(as_variable(x), /*test=*/true));
    {
        const using_config scope(&Config::train, false);
        check_test(link(as_variable(x)));
    }
    // Test mode also has gradients and accepts volatile variables.
    const Variable leaf(x);
    const Variable y = link(leaf, true);
    y.set_grad(Array::ones(y.shape()));
    y.backward();
    CHECK(leaf.grad());
    CHECK(link.gamma.grad());
    CHECK(link(Variable(x, true), true).is_volatile());
    CHECK(link.avg_mean.shape() == Shape{2});
}

TEST_CASE("fine-tuning averages over all batches since it was started") {
    links::BatchNormalization link(2);
    (void)link(as_variable(batch(7)));  // start_finetuning() discards this batch
    for (int round = 0; round < 2; ++round) {
        link.start_finetuning();
        std::vector<double> mean(2, 0.0), var(2, 0.0);
        for (int k = 0; k < 3; ++k) {
            (void)link(as_variable(batch(k)), false, /*finetune=*/true);
            for (std::size_t c = 0; c < 2; ++c) {
                mean[c] += statistics_of(batch(k)).mean[c] / 3;
                var[c] += statistics_of(batch(k)).unbiased[c] / 3;
            }
        }
        CHECK(link.N == 3);
        check_close(link.avg_mean, mean);
        check_close(link.avg_var, var);
    }
}

TEST_CASE("after fine-tuning, test mode normalises by the averages; it counts no batch") {
    links::BatchNormalization link(2);
    link.start_finetuning();
    (void)link(as_variable(batch(1)), false, true);
    (void)link(as_variable(batch(4)), false, true);
    const Statistics a = statistics_of(batch(1));
    const Statistics b = statistics_of(batch(4));
    const auto y = link(as_variable(batch(2)), true).data().to_vector<double>();
    for (std::size_t i = 0; i < 10; ++i) {
        const std::size_t c = i % 2;
        const double x = batch(2).to_vector<double>()[i];
        CHECK(y[i] == doctest::Approx((x - (a.mean[c] + b.mean[c]) / 2) /
                                      std::sqrt((a.unbiased[c] + b.unbiased[c]) / 2 + 2e-5))
                          .epsilon(1e-4));
    }
    // test takes precedence over finetune, and finetune over config().train.
    const auto mean = link.avg_mean.to_vector<double>();
    (void)link(as_variable(batch(3)), true, true);
    CHECK(link.N == 2);
    check_close(link.avg_mean, mean);
    const using_config scope(&Config::train, false);
    (void)link(as_variable(batch(3)), false, true);
    CHECK(link.N == 3);
    CHECK(link.avg_mean.to_vector<double>() != mean);
}

TEST_CASE("what records no graph keeps the running statistics up to date all the same") {
    links::BatchNormalization expected(2);
    (void)expected(as_variable(batch(1)));
    links::BatchNormalization link(2);
    const Variable y = link(Variable(batch(1), true));
    CHECK(y.is_volatile());
    CHECK(y.creator() == nullptr);
    CHECK(link.avg_var.to_vector<float>() == expected.avg_var.to_vector<float>());
    links::BatchNormalization other(2);
    const no_backprop_mode scope;
    CHECK(other(Variable(batch(1))).creator() == nullptr);
    CHECK(other.avg_mean.to_vector<float>() == expected.avg_mean.to_vector<float>());
}

TEST_CASE("batches of one and of none") {
    links::BatchNormalization link(2, 0.5);
    link.beta.data().fill(3);
    const Array one = Array::from({4.F, -8.F}, {1, 2});
    CHECK(link(as_variable(one)).data().to_vector<float>() == std::vector<float>{3, 3});
    check_close(link.avg_mean, {2, -4});
    check_close(link.avg_var, {0.5, 0.5});  // variance 0 does not divide by 0
    CHECK(link(as_variable(Array::zeros({0, 2}))).shape() == Shape{0, 2});
    check_close(link.avg_mean, {2, -4});
    link.start_finetuning();
    (void)link(as_variable(Array::zeros({0, 2})), false, true);
    CHECK(link.N == 0);
}

TEST_CASE("statistics are saved, moved and copied with the link") {
    const TemporaryFolder folder;
    links::BatchNormalization link(2);
    (void)link(as_variable(batch(1)));
    link.N = 4;
    save_npz(folder.path / "a.npz", link);
    links::BatchNormalization other(2);
    load_npz(folder.path / "a.npz", other);
    CHECK(other.avg_var.to_vector<float>() == link.avg_var.to_vector<float>());
    CHECK(other.N == 4);
    auto copy = deep_copy(link);
    (void)copy(as_variable(batch(2)));
    CHECK(link.avg_var.to_vector<float>() == other.avg_var.to_vector<float>());
    CHECK(copy.avg_var.to_vector<float>() != other.avg_var.to_vector<float>());
    const Device second = Device::get("cpu:1");
    link.to(second);
    CHECK(link.avg_mean.device() == second);
    (void)link(as_variable(batch(2).to(second)));
    CHECK(link.avg_mean.device() == second);
    CHECK(link.avg_mean.to_vector<float>() == copy.avg_mean.to_vector<float>());
}

TEST_CASE("gradients of both orders, and other dtypes") {
    links::BatchNormalization link(2);
    link.gamma.set_data(Array::from({1.5, -0.5}, {2}));
    link.beta.set_data(Array::from({0.25, 1.0}, {2}));
    const Array x = batch(3).astype(Dtype::float64);
    const Array gy = batch(4).astype(Dtype::float64);
    gradient_check::Options options{.eps = 1e-5, .atol = 1e-7, .rtol = 1e-5};
    options.params = {link.gamma, link.beta};
    for (const bool test : {false, true}) {
        const auto call = [&](const std::vector<Variable>& v) {
            return std::vector{link(v[0], test)};
        };
        CHECK_NOTHROW(
            gradient_check::check_backward(call, std::vector{x}, std::vector{gy}, options));
        const std::vector<Array> ggx{batch(5).astype(Dtype::float64), Array::from({1.0, 2.0}, {2}),
                                     Array::from({3.0, -1.0}, {2})};
        CHECK_NOTHROW(gradient_check::check_double_backward(call, std::vector{x}, std::vector{gy},
                                                            ggx, options));
    }
    links::BatchNormalization half(2);
    half.gamma.set_data(half.gamma.data().astype(Dtype::float16));
    half.beta.set_data(half.beta.data().astype(Dtype::float16));
    const Variable h = as_variable(batch(1).astype(Dtype::float16));
    CHECK(half(h).dtype() == Dtype::float16);
    CHECK(half(h, true).dtype() == Dtype::float16);
    CHECK(half.avg_mean.dtype() == Dtype::float32);
}

TEST_CASE("what is refused") {
    CHECK_THROWS_AS(links::BatchNormalization(0), ShapeError);
    CHECK_THROWS_AS(links::BatchNormalization(2, 1.5), InvalidError);
    links::BatchNormalization link(3);
    CHECK_THROWS_AS((void)link(as_variable(batch(1))), ShapeError);
}

TEST_CASE("a size that is a shape: each of its elements is a channel") {
    const auto values = [](const Variable& v) { return v.data().to_vector<float>(); };
    for (const Shape& rest : {Shape{}, Shape{2, 2}}) {
        links::BatchNormalization tensor(Shape{2, 3});
        links::BatchNormalization flat(6);
        CHECK(tensor.gamma.shape() == Shape{6});
        std::vector<std::int64_t> shape{4, 2, 3};
        shape.insert(shape.end(), rest.begin(), rest.end());
        seed(1);
        const Variable x(initializers::Normal(1)(Shape(shape)));
        shape.erase(shape.begin() + 1);
        shape[1] = 6;
        const Variable z(x.data().reshape(Shape(shape)));
        for (const bool test : {false, true}) {
            x.cleargrad();
            z.cleargrad();
            const Variable y = tensor(x, test);
            CHECK(y.shape() == x.shape());
            const Variable u = flat(z, test);
            CHECK(values(y) == values(u));
            y.set_grad(x.data());
            u.set_grad(z.data());
            y.backward();
            u.backward();
            CHECK(x.grad().to_vector<float>() == z.grad().to_vector<float>());
        }
        CHECK(tensor.avg_var.to_vector<float>() == flat.avg_var.to_vector<float>());
    }
    links::BatchNormalization link(Shape{2, 3});
    CHECK(link(Variable(Array::zeros({0, 2, 3}))).shape() == Shape{0, 2, 3});
    contains(error_of<ShapeError>([&] {
                 (void)link(Variable(Array::zeros({4, 3, 2})));
             }),
             "[BatchNormalization] x: expected (N, 2, 3, ...), got (4, 3, 2)");
    CHECK_THROWS_AS((void)link(Variable(Array::zeros({4, 2}))), ShapeError);
    contains(error_of<ShapeError>([&] {
                 links::BatchNormalization(Shape{2, 0});
             }),
             "[BatchNormalization] size: expected a positive number, got (2, 0)");
    contains(error_of<ShapeError>([&] { links::BatchNormalization(-1); }), "got -1");
}
