// Tests of autocast and LossScale. The CPU may lack fast products in half precision, so a result may be exact.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

Array numbers(const Shape& shape, std::uint64_t seed) {
    std::vector<double> v(static_cast<std::size_t>(shape.size()));
    Generator(seed).normal(v);
    return Array::from(v, shape).astype(Dtype::float32);
}

double error(const Array& x, const Array& exact) {
    const auto a = x.to_vector<double>(), b = exact.to_vector<double>();
    double squares = 0, all = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        squares += (a[i] - b[i]) * (a[i] - b[i]);
        all += b[i] * b[i];
    }
    return std::sqrt(squares / all);
}

bool has_bfloat16(bool with_amx = true) {
    std::ifstream file("/proc/cpuinfo");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
    const char* const chosen = std::getenv("CATENA_CPU_BFLOAT16");  // NOLINT(concurrency-mt-unsafe)
    if (chosen != nullptr) return chosen == std::string("avx512") && has(" avx512_bf16");
    return (with_amx && has(" amx_bf16")) || (has(" avx512_bf16") && has("AuthenticAMD"));
}

// The relative error of rounding both operands to bfloat16, at most.
constexpr double bound = 2 * 0x1p-9 * 1.5;

struct Case {
    const char* name;
    std::vector<Array> inputs;
    Variable (*call)(const std::vector<Variable>&);
    bool with_amx = true;  // rounded there, too
};

// Large enough to be rounded where there is hardware for it.
std::vector<Case> cases() {
    return {
        {"linear",
         {numbers({128, 200}, 1), numbers({100, 200}, 2), numbers({100}, 3)},
         [](const std::vector<Variable>& x) { return F::linear(x[0], x[1], x[2]); }},
        {"matmul",
         {numbers({130, 129}, 1), numbers({129, 131}, 2)},
         [](const std::vector<Variable>& x) { return F::matmul(x[0], x[1]); }},
        {"convolution_2d",
         {numbers({8, 16, 14, 14}, 1), numbers({32, 16, 3, 3}, 2)},
         [](const std::vector<Variable>& x) { return F::convolution_2d(x[0], x[1]); }},
        {"convolution_2d, few channels",
         {numbers({16, 5, 15, 15}, 1), numbers({40, 5, 5, 5}, 2)},
         [](const std::vector<Variable>& x) { return F::convolution_2d(x[0], x[1]); }},
        {"scaled_dot_product_attention",
         {numbers({2, 4, 75, 24}, 1), numbers({2, 2, 75, 24}, 2), numbers({2, 2, 75, 20}, 3)},
         [](const std::vector<Variable>& x) {
             return F::scaled_dot_product_attention(x[0], x[1], x[2], {}, {}, {}, true);
         },
         false},
        {"scaled_dot_product_attention, 128 elements",
         {numbers({1, 1, 80, 128}, 1), numbers({1, 1, 80, 128}, 2), numbers({1, 1, 80, 128}, 3)},
         [](const std::vector<Variable>& x) {
             return F::scaled_dot_product_attention(x[0], x[1], x[2], {}, {}, {}, true);
         },
         false},
        {"scaled_dot_product_attention, odd sizes, many elements",
         {numbers({1, 2, 67, 33}, 1), numbers({1, 2, 131, 33}, 2), numbers({1, 2, 131, 130}, 3)},
         [](const std::vector<Variable>& x) {
             return F::scaled_dot_product_attention(x[0], x[1], x[2]);
         },
         false},
    };
}

// The result and the gradients of its sum of squares.
std::vector<Array> results(const Case& c, Dtype dtype, Dtype products) {
    std::vector<Variable> x;
    for (const Array& array : c.inputs) x.emplace_back(array.astype(dtype));
    const Variable y = [&] {
        const autocast scope(products);
        return c.call(x);
    }();
    F::sum(y * y).backward();
    std::vector<Array> all = {y.data()};
    for (const Variable& v : x) all.push_back(v.grad());
    return all;
}

}  // namespace

TEST_CASE("products are rounded at most to bfloat16; all arrays are float32") {
    for (const Case& c : cases()) {
        CAPTURE(c.name);
        const auto exact = results(c, Dtype::float64, Dtype::float32);
        const auto plain = results(c, Dtype::float32, Dtype::float32);
        const auto rounded = results(c, Dtype::float32, Dtype::bfloat16);
        const auto again = results(c, Dtype::float32, Dtype::bfloat16);
        const auto after = results(c, Dtype::float32, Dtype::float32);
        for (std::size_t i = 0; i < exact.size(); ++i) {
            CAPTURE(i);
            CHECK(rounded[i].dtype() == Dtype::float32);
            CHECK(error(plain[i], exact[i]) < 1e-6);
            CHECK(error(rounded[i], exact[i]) < 2 * bound);
            if (has_bfloat16(c.with_amx) && i < 3) CHECK(error(rounded[i], exact[i]) > 1e-4);
            CHECK(rounded[i].to_vector<float>() == again[i].to_vector<float>());
            CHECK(plain[i].to_vector<float>() == after[i].to_vector<float>());
        }
        // The CPU has no products in float16.
        CHECK(results(c, Dtype::float32, Dtype::float16)[0].to_vector<float>() ==
              plain[0].to_vector<float>());
        CHECK(results(c, Dtype::float64, Dtype::bfloat16)[0].to_vector<double>() ==
              exact[0].to_vector<double>());
    }
}

TEST_CASE("autocast is the thread's own, and nests") {
    CHECK(config().products == Products::float32);
    {
        const autocast scope;
        CHECK(config().products == Products::bfloat16);
        std::thread([] { CHECK(config().products == Products::float32); }).join();
        {
            const autocast inner(Dtype::float32);
            CHECK(config().products == Products::float32);
            const autocast half(Dtype::float16);
            CHECK(config().products == Products::float16);
        }
        CHECK(config().products == Products::bfloat16);
    }
    CHECK(config().products == Products::float32);
    CHECK_THROWS_WITH_AS(autocast(Dtype::int32),
                         "[autocast] dtype: expected bfloat16, float16 or float32, got int32",
                         InvalidError);
    CHECK(config().products == Products::float32);
}

TEST_CASE("a gradient of any order has the precision of the call") {
    const Array a = numbers({128, 128}, 1), b = numbers({128, 128}, 2);
    const auto second = [&](Dtype products, Dtype outside) {
        const Variable x(a), w(b);
        const Variable y = [&] {
            const autocast scope(products);
            return F::matmul(x, w);
        }();
        const autocast scope(outside);
        F::sum(y * y).backward(false, true);
        const Variable g = x.grad_variable();
        x.cleargrad();
        w.cleargrad();
        F::sum(g * g).backward();
        return w.grad().to_vector<float>();
    };
    const auto plain = second(Dtype::float32, Dtype::float32);
    const auto rounded = second(Dtype::bfloat16, Dtype::float32);
    CHECK(second(Dtype::float32, Dtype::bfloat16) == plain);
    CHECK(second(Dtype::bfloat16, Dtype::bfloat16) == rounded);
}

TEST_CASE("products of bfloat16 arrays are sums of float32") {
    const Array a = numbers({128, 300}, 1).astype(Dtype::bfloat16);
    const Array b = numbers({300, 128}, 2).astype(Dtype::bfloat16);
    const auto product = [&](Dtype dtype) {
        return F::matmul(Variable(a.astype(dtype)), Variable(b.astype(dtype))).data();
    };
    CHECK(product(Dtype::bfloat16).dtype() == Dtype::bfloat16);
    CHECK(error(product(Dtype::bfloat16), product(Dtype::float64)) < 0x1p-8);
}

namespace {

struct One : Link {
    Parameter w{Array::from<float>({1, -2}, {2})};
    void visit(Visitor& v) override { v("w", w); }
};

}  // namespace

TEST_CASE("LossScale skips steps with gradients that are not finite") {
    One model;
    optimizers::SGD optimizer(0.5);
    optimizer.setup(model);
    LossScale scale(1024, 2);
    const auto step = [&](float gradient) {
        optimizer.cleargrads();
        scale(F::sum(model.w * Array::from<float>({gradient, 1}, {2}))).backward();
        return scale.update(optimizer);
    };
    const auto values = [&] { return model.w.data().to_vector<float>(); };
    CHECK(step(2));
    CHECK(values() == std::vector<float>{0, -2.5F});
    CHECK(model.w.grad().to_vector<float>() == std::vector<float>{2, 1});
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
        const double before = scale.value();
        CHECK(!step(bad));
        CHECK(scale.value() == before / 2);
        CHECK(values() == std::vector<float>{0, -2.5F});
        CHECK(optimizer.t() == 1);
    }
    CHECK(!step(3e38F));  // finite until it is scaled
    CHECK(scale.value() == 128);
    CHECK(step(2));  // the count of good steps starts again
    CHECK(scale.value() == 128);
    CHECK(step(2));
    CHECK(scale.value() == 256);
    CHECK(values() == std::vector<float>{-2, -3.5F});
    CHECK(optimizer.t() == 3);
}

TEST_CASE("hooks of the optimizer see gradients that are not scaled") {
    One model;
    optimizers::SGD optimizer(1);
    optimizer.setup(model);
    optimizer.add_hook([](const Optimizer& o) { o.clip_grads(5); });
    LossScale scale(65536);
    scale(F::sum(model.w * Array::from<float>({3, 4}, {2}))).backward();
    CHECK(scale.update(optimizer));
    CHECK(model.w.data().to_vector<float>() == std::vector<float>{-2, -6});
}

TEST_CASE("LossScale saves its state and checks its arguments") {
    LossScale scale(8, 3), other;
    One model;
    optimizers::SGD optimizer(0);
    optimizer.setup(model);
    model.w.set_grad(Array::ones({2}).astype(Dtype::float32));
    CHECK(scale.update(optimizer));
    CHECK(scale.update(optimizer));
    const TemporaryFolder folder;
    save_npz(folder.path / "scale.npz", scale);
    load_npz(folder.path / "scale.npz", other);
    CHECK(other.value() == 8);
    CHECK(scale.update(optimizer));
    CHECK(scale.value() == 16);
    for (const double value : {0.0, -1.0, std::nan(""), HUGE_VAL})
        CHECK_THROWS_AS(LossScale{value}, InvalidError);
    CHECK_THROWS_WITH_AS(LossScale(1, 0), "[LossScale] patience: expected at least 1, got 0",
                         InvalidError);
}
