// Tests of optimizers that Chainer 1 lacks, of groups and hooks, and of moving averages.
#include <catena/core/error.hpp>
#include <catena/links.hpp>
#include <catena/moving_average.hpp>
#include <catena/operators.hpp>
#include <catena/optimizers.hpp>
#include <catena/serializer.hpp>

#include "temporary.hpp"
#include "two_parameters.hpp"

#include <cmath>
#include <functional>

using namespace catena;

TEST_CASE("optimizers that Chainer 1 lacks: three steps") {
    // By Chainer 7.8 in float64.
    optimizers::NesterovAG nesterov_ag;
    check_steps(nesterov_ag, 0.9487795F, -1.97438975F);
    optimizers::AdamW adam_w(0.001, 0.9, 0.999, 1e-8, 1, /*weight_decay_rate=*/1e-5);
    check_steps(adam_w, 0.99697003F, -1.99694003F);
    optimizers::AMSGrad ams_grad;
    check_steps(ams_grad, 0.997F, -1.997F);
    optimizers::CorrectedMomentumSGD corrected;
    check_steps(corrected, 0.97195F, -1.985975F);
    optimizers::SMORMS3 smorms3;
    check_steps(smorms3, 0.99628789F, -1.99628789F);
    optimizers::RMSprop inside(0.01, 0.99, 0.1, /*eps_inside_sqrt=*/true);
    check_steps(inside, 0.95369529F, -1.97642859F);
    // The first step of Lion has the size lr; AdaBound's bounds are far apart at first.
    optimizers::Lion lion(0.1);
    check_steps(lion, 0.7F, -1.7F);
    optimizers::AdaBound ada_bound;
    check_steps(ada_bound, 0.997F, -1.997F);
    optimizers::AMSBound ams_bound;
    check_steps(ams_bound, 0.997F, -1.997F);
    const Optimizer& base = ams_bound;  // the variants are classes of Adam, as in Chainer
    CHECK(dynamic_cast<const optimizers::Adam&>(base).amsgrad);
}

TEST_CASE("groups: own rates, no decay, frozen") {
    const auto only = [](const char* name) {
        return [name](const NamedParameter& p) { return p.name == name; };
    };
    const auto train = [&](Optimizer& optimizer, const ParameterGroup& group) {
        const Two two;
        optimizer.setup(two);
        optimizer.set_group(only("q"), group);
        for (int i = 0; i < 2; ++i) {
            two.set_grad();
            two.q.set_grad(Array::from({1.F}, {1}));
            optimizer.update();
        }
        return std::pair(two.values()[0], two.q.data().item<float>());
    };
    optimizers::SGD sgd(0.5);
    CHECK(train(sgd, {}) == std::pair(0.5F, 4.F));
    CHECK(train(sgd, {.rate = 0.5}) == std::pair(0.5F, 4.5F));
    CHECK(train(sgd, {.frozen = true}) == std::pair(0.5F, 5.F));
    // Every optimizer reads both factors where it has them: rate 0 keeps the parameter.
    for (const std::string_view name : optimizers::names()) {
        CAPTURE(std::string(name));
        const auto optimizer = optimizers::make(name);
        if (!optimizers::default_rate(name)) {
            CHECK_THROWS_AS(train(*optimizer, {.rate = 0}), UnsupportedError);
            continue;
        }
        const auto [p, q] = train(*optimizer, {.rate = 0});
        CHECK(p != 1);
        CHECK(q == 5);
    }
    // Decoupled decay of a parameter whose gradient is 0.
    const Two two;
    optimizers::AdamW adam_w(0.1, 0.9, 0.999, 1e-8, 1, /*weight_decay_rate=*/0.05);
    adam_w.setup(two);
    adam_w.set_group(only("p"), {.decay = 0});
    two.p.set_grad(Array::zeros({2}));
    two.q.set_grad(Array::zeros({1}));
    adam_w.update();
    CHECK(two.values() == std::vector<float>{1, -2});
    CHECK(two.q.data().item<float>() == doctest::Approx(5 * 0.95));
    // L2 decay, norms and clipping.
    adam_w.weight_decay(0.5);
    CHECK(two.grads() == std::vector<float>{0, 0});
    CHECK(two.q.grad().item<float>() == doctest::Approx(5 * 0.95 * 0.5));
    adam_w.set_group(only("q"), {.frozen = true});
    CHECK(adam_w.compute_grads_norm() == 0);
    adam_w.clip_grads(0.1);
    CHECK(two.q.grad().item<float>() == doctest::Approx(5 * 0.95 * 0.5));

    CHECK_THROWS_WITH_AS(optimizers::SGD().set_group(only("p"), {}),
                         "[set_group] parameters: expected some of the 0 of setup(), got none",
                         InvalidError);
    CHECK_THROWS_WITH_AS(adam_w.set_group(only("r"), {}),
                         "[set_group] parameters: expected some of the 2 of setup(), got none",
                         InvalidError);
    CHECK_THROWS_WITH_AS(adam_w.set_group(only("p"), {.rate = -1}),
                         "[set_group] rate: expected a finite number >= 0, got -1", InvalidError);
    CHECK_THROWS_WITH_AS(adam_w.set_group(only("p"), {.decay = NAN}),
                         "[set_group] decay: expected a finite number >= 0, got nan", InvalidError);
}

TEST_CASE("a rule that ignores groups refuses their factors") {
    struct Ignorant : Optimizer {
        void update_one(Array& param, const Array& grad, std::span<Array>) override {
            param -= grad;
        }
    } optimizer;
    const Two two;
    optimizer.setup(two);
    const auto all = [](const NamedParameter&) { return true; };
    optimizer.set_group(all, {.rate = 0.5});
    two.set_grad();
    CHECK_THROWS_WITH_AS(optimizer.update(),
                         "[update] groups: expected an update rule that reads group(), because a "
                         "parameter has the rate 0.5 and the decay 1, got one that does not",
                         UnsupportedError);
    CHECK(two.values() == std::vector<float>{1, -2});
    CHECK(optimizer.t() == 0);
    optimizer.set_group(all, {.frozen = true});
    optimizer.update();
    CHECK(two.values() == std::vector<float>{1, -2});
}

TEST_CASE("added hooks run before each step, in order") {
    const Two two;
    optimizers::SGD sgd(1);
    std::string calls;
    sgd.add_hook([&](const Optimizer& o) {
        calls += 'a';
        o.weight_decay(0.5);
    });
    sgd.add_hook([&](const Optimizer& o) {
        calls += 'b';
        o.clip_grads(0);
    });
    sgd.setup(two);
    two.set_grad();
    sgd.update();
    CHECK(calls == "ab");
    CHECK(two.values() == std::vector<float>{1, -2});
    sgd.add_hook([](const Optimizer&) { throw std::runtime_error("stop"); });
    CHECK_THROWS_WITH(sgd.update(), "stop");
    CHECK(sgd.t() == 1);
}

TEST_CASE("update() checks the parameters before hooks change or add gradients") {
    const Two two;
    optimizers::MomentumSGD momentum;
    int calls = 0;
    momentum.add_hook([&](const Optimizer& o) {
        ++calls;
        o.weight_decay(0.5);
    });
    CHECK_THROWS_AS(momentum.update(), InvalidError);
    CHECK(calls == 0);
    momentum.setup(two);
    two.p.set_data(Array::zeros({3}));
    two.p.set_grad(Array::ones({3}));
    const char* const message = "[update] p: expected (2,) float32 as at setup(), got (3,) float32";
    CHECK_THROWS_WITH_AS(momentum.update(), message, InvalidError);
    CHECK(calls == 0);
    CHECK(two.grads() == std::vector<float>{1, 1, 1});
    CHECK_FALSE(two.q.grad());
    // Only the hook would give this parameter a gradient.
    two.p.cleargrad();
    CHECK_THROWS_WITH_AS(momentum.update(), message, InvalidError);
    CHECK(calls == 0);
    CHECK(momentum.t() == 0);
}

TEST_CASE("RMSpropGraves: the variance of equal gradients is not negative") {
    optimizers::RMSpropGraves graves(1e-4, 0.5, 0, /*eps=*/0.25);
    const Two two;
    graves.setup(two);
    two.p.set_grad(Array::from({12345.678F, -1e9F}, {2}));
    for (int i = 0; i < 100; ++i) graves.update();
    const float before = two.values()[0];
    graves.update();
    CHECK(two.values()[0] < before);
    CHECK(two.values()[1] > -2);
    CHECK(std::isfinite(two.values()[0] + two.values()[1]));
}

TEST_CASE("bounds of a rate that is 0") {
    const Two two;
    optimizers::AdaBound ada_bound(0, 0.9, 0.999, /*final_lr=*/0.1, /*gamma=*/1);
    ada_bound.setup(two);
    two.set_grad();
    ada_bound.update();
    CHECK(two.values() == std::vector<float>{1, -2});
    // The bounds of the second step are 2/3 and 3/2 of final_lr; the moment m is 0.19 g.
    ada_bound.set_rate(1e-9);
    ada_bound.update();
    CHECK(two.values()[0] == doctest::Approx(1 - 0.1 * 2 / 3 * 0.19 * 0.5));
    CHECK(two.values()[1] == doctest::Approx(-2 + 0.1 * 2 / 3 * 0.19 * 0.25));
    // A rate that becomes 0.
    optimizers::AMSBound ams_bound(0.1);
    ams_bound.setup(two);
    ams_bound.set_rate(0);
    const auto before = two.values();
    ams_bound.update();
    CHECK(two.values() == before);
}

TEST_CASE("Lamb: steps have the length lr * |p|; a parameter that is 0 takes the step of Adam") {
    const Two two;
    optimizers::Lamb lamb(0.1, 0.9, 0.999, 1e-6, /*weight_decay_rate=*/0);
    lamb.setup(two);
    two.set_grad();
    lamb.update();
    // The first direction is the sign of the gradient: (1, -1) of length sqrt(2).
    const double length = 0.1 * std::sqrt(5.0) / std::sqrt(2.0);
    CHECK(two.values()[0] == doctest::Approx(1 - length).epsilon(1e-5));
    CHECK(two.values()[1] == doctest::Approx(-2 + length).epsilon(1e-5));
    two.q.data().fill(0);
    two.p.cleargrad();
    two.q.set_grad(Array::from({3.F}, {1}));
    lamb.setup(two);
    lamb.update();
    CHECK(two.q.data().item<float>() == doctest::Approx(-0.1).epsilon(1e-5));
    two.q.data().fill(0);
    two.q.set_grad(Array::zeros({1}));
    lamb.setup(two);
    lamb.update();
    CHECK(two.q.data().item<float>() == 0);
    CHECK_THROWS_AS(optimizers::Lamb(-1), InvalidError);
    // Its pieces, and elements after the last one.
    const auto n = std::int64_t{3} * 16384 + 37;
    const Variable long_one(Array::ones({n}));
    long_one.set_grad(Array::full({n}, -2));
    lamb.setup(std::vector<NamedParameter>{{"p", long_one}});
    lamb.update();
    for (const float each : long_one.data().to_vector<float>())
        REQUIRE(each == doctest::Approx(1.1).epsilon(1e-5));
}

TEST_CASE("ExponentialMovingAverage") {
    const Two two;
    ExponentialMovingAverage averages(two, 0.75);
    two.p.data() += 4;
    averages.update();
    averages.swap();
    CHECK(two.values() == std::vector<float>{2, -1});
    averages.swap();
    CHECK(two.values() == std::vector<float>{5, 2});
    const TemporaryFolder folder;
    save_npz(folder.path / "averages.npz", averages);
    ExponentialMovingAverage loaded(two, 0.75);
    load_npz(folder.path / "averages.npz", loaded);
    loaded.swap();
    CHECK(two.values() == std::vector<float>{2, -1});
    // Averages of halves are float32: in bfloat16 a small change would be lost.
    struct Half : Link {
        Parameter p{Array::from({1.F}, {1}).astype(Dtype::bfloat16)};
        void visit(Visitor& v) override { v("p", p); }
    } half;
    ExponentialMovingAverage fine(half, 0.5);
    for (int i = 0; i < 2; ++i) {
        half.p.data() += 0.0078125;
        fine.update();
    }
    struct Read : Visitor {
        void array(const std::string&, Array& value) override { got = value; }
        Array got;
    } read;
    fine.visit(read);
    CHECK(read.got.dtype() == Dtype::float32);
    CHECK(read.got.item<float>() == 1 + 0.0078125 * (0.25 + 1));
    fine.swap();
    CHECK(half.p.data().dtype() == Dtype::bfloat16);
    CHECK_THROWS_WITH_AS(ExponentialMovingAverage(two, 1.5),
                         "[ExponentialMovingAverage] decay: expected 0 to 1, got 1.5",
                         InvalidError);
}
