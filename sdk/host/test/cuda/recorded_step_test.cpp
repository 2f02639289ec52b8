// Tests of recorded training steps, and of optimizers that update many parameters in one launch.
#include "gpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace gpus;
namespace F = catena::functions;

namespace {

struct Net : Chain {
    links::Linear l1{5, 7}, l2{7, 3};
    links::BatchNormalization bn{7};
    void visit(Visitor& v) override { v("l1", l1)("bn", bn)("l2", l2); }
    Variable operator()(const Variable& x) override {
        return l2(F::dropout(F::dropout(F::tanh(bn(l1(x))), 0.2), 0));
    }
};

Array images(std::int64_t n, std::uint64_t seed) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < n * 5; ++i)
        values.push_back(static_cast<float>(std::sin(static_cast<double>(seed * 100 + i))));
    return Array::from(values, {n, 5});
}
Array labels(std::int64_t n) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<std::int32_t>(i % 3));
    return Array::from(values, {n});
}

// Returns the losses, parameters and statistics after one step for each batch size in sizes.
template <class Optimizer>
std::vector<std::vector<double>> train(bool recorded, std::vector<std::int64_t> sizes) {
    const using_device scope(first());
    seed(3);
    Net net;
    Optimizer optimizer;
    optimizer.setup(net);
    std::size_t norms_above = 0;
    const auto body = [&](std::span<const Array> batch) -> std::vector<Array> {
        const Variable loss =
            F::softmax_cross_entropy(net(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.weight_decay(0.01);
        optimizer.clip_grads(1.5);  // some norms are above it, some below
        norms_above += !recorded && optimizer.compute_grads_norm() > 1.499;
        optimizer.update();
        return {loss.data()};
    };
    RecordedStep step(optimizer, body);
    std::vector<std::vector<double>> result(1);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Array batch[] = {images(sizes[i], i).to(first()), labels(sizes[i]).to(first())};
        if (i == 5) optimizer.scale_rate(0.5);
        result[0].push_back((recorded ? step(batch) : body(batch))[0].template item<double>());
    }
    // Checks that the random stream has advanced equally.
    result[0].push_back(
        F::sum(F::dropout(Variable(images(9, 1).to(first())))).data().item<double>());
    CHECK(optimizer.t() == static_cast<std::int64_t>(sizes.size()));
    for (const auto& p : net.collect_parameters())
        result.push_back(p.variable.data().template to_vector<double>());
    for (const Array& statistic : {net.bn.avg_mean, net.bn.avg_var})
        result.push_back(statistic.template to_vector<double>());
    if (!recorded) {
        CHECK(norms_above > 0);
        CHECK(norms_above < sizes.size());
    }
    if (recorded && Capture::supported(first())) {
        CHECK(step.recordings() > 0);
        CHECK(step.size() > 0);
    } else {
        CHECK(step.recordings() == 0);
    }
    return result;
}
struct Sgd : optimizers::SGD {
    void scale_rate(double by) { lr *= by; }
};
struct Adam : optimizers::Adam {
    void scale_rate(double by) { alpha *= by; }
};
struct Momentum : optimizers::MomentumSGD {
    void scale_rate(double by) { lr *= by; }
};

}  // namespace

TEST_CASE_TEMPLATE("a recorded step: the same numbers, with other rates, sizes and steps", O, Sgd,
                   Adam, Momentum) {
    const SameDevice same;
    const std::vector<std::int64_t> sizes = {4, 4, 4, 4, 2, 4, 4, 2, 2, 2, 4};
    CHECK(train<O>(true, sizes) == train<O>(false, sizes));
}

TEST_CASE("a recorded step after setup(), and after its parameters moved: as without") {
    const auto learn = [](bool recorded, int when) {
        const using_device scope(first());
        seed(3);
        Net net;
        optimizers::Adam optimizer;
        optimizer.setup(net);
        const auto body = [&](std::span<const Array> batch) -> std::vector<Array> {
            const Variable loss =
                F::softmax_cross_entropy(net(as_variable(batch[0])), as_variable(batch[1]));
            optimizer.cleargrads();
            loss.backward();
            optimizer.update();
            return {loss.data()};
        };
        RecordedStep step(optimizer, body);
        std::vector<double> losses;
        for (int i = 0; i < 16; ++i) {
            if (i == when) optimizer.setup(net);
            if (i == 10) net.to(cuda::host());
            if (i == 10) net.to(first());
            const Array batch[] = {images(4, 1).to(first()), labels(4).to(first())};
            losses.push_back((recorded ? step(batch) : body(batch))[0].item<double>());
        }
        CHECK(optimizer.t() == 16 - when);
        return losses;
    };
    for (const int when : {1, 2, 3, 5}) {
        CAPTURE(when);
        CHECK(learn(true, when) == learn(false, when));
    }
}

TEST_CASE("a recorded step that cannot be says why, and counts nothing") {
    const using_device scope(first());
    Net net;
    optimizers::Adam optimizer;
    optimizer.setup(net);
    const Array x[] = {images(2, 1).to(first())};
    int updates = 1;
    RecordedStep step(optimizer, [&](std::span<const Array> batch) -> std::vector<Array> {
        const Variable y = F::sum(net(as_variable(batch[0])));
        optimizer.cleargrads();
        y.backward();
        for (int i = 0; i < updates; ++i) optimizer.update();
        return {y.data()};
    });
    step(x);
    step(x);
    updates = 2;
    if (Capture::supported(first())) {
        contains(error_of<InvalidError>([&] { step(x); }), "expected one update()");
        updates = 1;
    }
    CHECK(optimizer.t() == 2);
    const auto nothing = [](std::span<const Array>) { return std::vector<Array>(); };
    contains(error_of<InvalidError>([&] { RecordedStep(optimizer, nothing)({}); }),
             "[RecordedStep] inputs: expected an array, got none");
    if (first() != second())
        contains(error_of<DeviceError>([&] {
                     const Array both[] = {x[0], x[0].to(second())};
                     step(both);
                 }),
                 "[RecordedStep] inputs[1]: expected an array on ");
    contains(error_of<InvalidError>([&] { RecordedStep(optimizer, {}); }), "[RecordedStep] body");
}

TEST_CASE("a recorded step with a rule on arrays says that it needs a function") {
    const using_device scope(first());
    struct Rule : Optimizer {
        void update_one(Array& param, const Array& grad, std::span<Array>) override {
            param.copy_from(grad);
        }
    };
    for (const bool has_gradient : {true, false}) {
        const Variable p = as_parameter(Array::ones({2}, Dtype::float32, first()));
        Rule optimizer;
        optimizer.setup({{"p", p}});
        RecordedStep step(optimizer, [&](std::span<const Array> batch) -> std::vector<Array> {
            if (has_gradient) p.set_grad(batch[0]);
            optimizer.update();
            return {};
        });
        const Array x[] = {Array::ones({2}, Dtype::float32, first())};
        step(x);
        step(x);
        if (!Capture::supported(first())) continue;
        contains(error_of<UnsupportedError>([&] { step(x); }),
                 "[update] update rule: expected a function of a plugin");
        CHECK(optimizer.t() == 2);
    }
}

// A model with one parameter. Its body counts its runs and throws on demand.
struct Learner {
    explicit Learner(std::int64_t n) : p(as_parameter(Array::ones({n}, Dtype::float32, first()))) {
        optimizer.setup({{"p", p}});
    }
    double operator()(std::int64_t n) {
        const Array x[] = {Array::full({n}, 2, Dtype::float32, first())};
        return step(x)[0].item<double>();
    }
    std::vector<Array> body(std::span<const Array> batch) {
        ++runs;
        const Variable y = F::sum(p) * F::sum(as_variable(batch[0]));
        optimizer.cleargrads();
        y.backward();
        optimizer.update();
        if (fails) throw InvalidError("on demand");
        return {y.data()};
    }
    Variable p;
    optimizers::SGD optimizer{0.25};
    int runs = 0;
    bool fails = false;
    RecordedStep step{optimizer, [this](std::span<const Array> batch) { return body(batch); }};
};

TEST_CASE(
    "a body that fails while it is recorded leaves all as it was, and can be recorded again") {
    if (!Capture::supported(first())) return;
    Learner learner(1);
    CHECK(learner(1) == 2);  // then p = 1 - 2 / 4
    CHECK(learner(1) == 1);  // p = 0.5
    learner.fails = true;
    for (int i = 0; i < 3; ++i) {
        CHECK_THROWS_AS(learner(1), InvalidError);
        CHECK_FALSE(learner.p.grad());
        CHECK(learner.p.data().item<float>() == 0);
        CHECK(learner.optimizer.t() == 2);
        CHECK(learner.step.recordings() == 0);
    }
    learner.fails = false;
    CHECK(learner(1) == 0);
    CHECK(learner(1) == -1);
    CHECK(learner.step.recordings() == 1);
    CHECK(learner.optimizer.t() == 4);
    CHECK(learner.runs == 6);
}

TEST_CASE("a recorded step in which gradients add up, or lie where others write them") {
    const auto learn = [](bool recorded) {
        const using_device scope(first());
        const Variable p = as_parameter(Array::ones({3}, Dtype::float32, first()));
        p.set_grad(Array::zeros({3}, Dtype::float32, first()));
        const Array outside = Array::ones({3}, Dtype::float32, first());
        optimizers::SGD optimizer(0.125);
        optimizer.setup({{"p", p}});
        const auto body = [&](std::span<const Array> batch) -> std::vector<Array> {
            const Variable y = F::sum(p * as_variable(batch[0]));
            y.backward();
            optimizer.clip_grads(4);
            optimizer.update();
            outside.copy_from(F::add(outside, p.data()));
            return {y.data()};
        };
        RecordedStep step(optimizer, body);
        std::vector<float> seen;
        for (int i = 0; i < 8; ++i) {
            const Array batch[] = {Array::full({3}, i % 3 - 1, Dtype::float32, first())};
            if (i == 5) p.grad().copy_from(Array::full({3}, 0.5, Dtype::float32, first()));
            seen.push_back((recorded ? step(batch) : body(batch))[0].item<float>());
            for (const Array& each : {p.data(), p.grad(), outside})
                for (const float v : values(each)) seen.push_back(v);
        }
        return seen;
    };
    CHECK(learn(true) == learn(false));
}

TEST_CASE("clip_grads: one norm over devices and dtypes") {
    std::vector<NamedParameter> parameters;
    const auto add = [&](Dtype dtype, Device device, double gradient) {
        const Variable p = as_parameter(Array::ones({4}, dtype, device));
        p.set_grad(Array::full({4}, gradient, dtype, device));
        parameters.push_back({"p" + std::to_string(parameters.size()), p});
    };
    add(Dtype::float16, first(), 1);
    add(Dtype::float32, second(), -2);
    add(Dtype::float64, first(), 2);
    add(Dtype::bfloat16, cuda::host(), 4);
    add(Dtype::float64, cuda::host(), 0);
    optimizers::SGD optimizer;
    optimizer.setup(parameters);
    CHECK(optimizer.compute_grads_norm() == 10);
    for (const double limit : {20.0, 10.0, 5.0, 2.5}) {
        optimizer.clip_grads(limit);
        const double factor = std::min(1.0, limit / 10);
        const double expected[] = {1, -2, 2, 4, 0};
        for (std::size_t i = 0; i < 5; ++i) {
            const Array& gradient = parameters[i].variable.grad();
            CHECK(gradient.device() == parameters[i].variable.device());
            CHECK(gradient.to_vector<double>() == std::vector<double>(4, factor * expected[i]));
        }
    }
}

TEST_CASE("a recorded step for many shapes: the first are recorded, until they come no more") {
    if (!Capture::supported(first())) return;
    Learner learner(1);
    learner.optimizer.lr = 0;
    constexpr auto most = static_cast<std::int64_t>(RecordedStep::most_shapes);
    for (int round = 0; round < 4; ++round) {
        for (std::int64_t n = 1; n <= most + 1; ++n)
            CHECK(learner(n) == static_cast<double>(2 * n));
    }
    CHECK(learner.step.recordings() == RecordedStep::most_shapes);
    CHECK(learner.runs == 3 * most + 4);
    for (std::uint64_t i = 0; i < RecordedStep::patience; ++i) CHECK(learner(2) == 4);
    learner.runs = 0;
    for (int i = 0; i < 4; ++i) CHECK(learner(most + 1) == static_cast<double>(2 * most + 2));
    CHECK(learner.runs == 3);
    CHECK(learner.step.recordings() == RecordedStep::most_shapes);
    CHECK(learner(1) == 2);  // replaces an old recording
    CHECK(learner(1) == 2);
    CHECK(learner.runs == 5);
}

TEST_CASE("where memory is too small for a recording, a step runs as it is") {
    constexpr std::int64_t n = 1 << 20;
    if (!Capture::supported(first()) || first().memory_size().total > 128 * n) {
        std::puts("skipped: a case that expects a device of less than 128 MiB");
        return;
    }
    Learner learner(n);
    first().release_cached();
    for (int i = 0; i < 2; ++i) learner(1);
    const std::int64_t gradient = n * static_cast<std::int64_t>(sizeof(float));
    const Array rest =
        Array::empty({first().memory_size().free - gradient / 2}, Dtype::uint8, first());
    for (int i = 0; i < 3; ++i) learner(1);
    CHECK(learner.step.recordings() == 0);
    CHECK(learner.optimizer.t() == 5);
    CHECK(learner.runs == 6);  // one recording ran out of memory
    CHECK(learner.p.grad().to_vector<float>()[7] == 2);
    CHECK(learner.p.data().to_vector<float>()[7] == 1 - 5 * 0.5F);
}

TEST_CASE("an update of many parameters: as of each by itself") {
    const using_device scope(first());
    std::vector<NamedParameter> parameters[2];
    optimizers::Adam optimizer;
    for (const int together : {0, 1}) {
        for (int i = 0; i < 200; ++i) {
            const std::int64_t n = i % 7 == 0 ? 0 : i == 100 ? 20001 : 1 + i * 13 % 70;
            const Dtype dtype = i % 11 == 3   ? Dtype::float64
                                : i % 11 == 5 ? Dtype::float16
                                              : Dtype::float32;
            const Variable p = as_parameter(Array::full({n}, 1 + i, dtype, first()));
            p.set_grad(Array::full({n}, 0.25 * (i % 5 - 2), dtype, first()));
            if (i % 13 == 2) p.cleargrad();
            parameters[together].push_back({"p" + std::to_string(i), p});
        }
    }
    optimizer.setup(parameters[1]);
    std::vector<optimizers::Adam> alone(200);
    for (int step = 0; step < 3; ++step) {
        optimizer.update();
        for (std::size_t i = 0; i < 200; ++i) {
            if (step == 0) alone[i].setup({parameters[0][i]});
            alone[i].update();
        }
    }
    for (std::size_t i = 0; i < 200; ++i)
        CHECK(values(parameters[0][i].variable.data()) == values(parameters[1][i].variable.data()));

    // A few launches: one for each dtype and each group of tensors that fits in one launch.
    if (!Capture::supported(first())) return;
    optimizers::SGD plain;
    plain.setup(parameters[1]);
    const Capture capture(Stream(first()), [&] { plain.update(); });
    CHECK(capture.size() <= 6);
}
