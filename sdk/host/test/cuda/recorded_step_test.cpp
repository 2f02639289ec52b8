// Training steps that are recorded, and optimizers that update many parameters together.
#include "gpus.hpp"

#include <cmath>

using namespace gpus;
namespace F = catena::functions;

namespace {

struct Net : Chain {
    links::Linear l1{5, 7}, l2{7, 3};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override {
        return l2(F::dropout(F::dropout(F::tanh(l1(x)), 0.2), 0));
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

// The parameters, and the losses, after so many steps of batches of the sizes.
template <class Optimizer>
std::vector<std::vector<double>> train(bool recorded, std::vector<std::int64_t> sizes) {
    const using_device scope(first());
    seed(3);
    Net net;
    Optimizer optimizer;
    optimizer.setup(net);
    const auto body = [&](std::span<const Array> batch) -> std::vector<Array> {
        const Variable loss =
            F::softmax_cross_entropy(net(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.weight_decay(0.01);
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
    // The generator is where it would be.
    result[0].push_back(
        F::sum(F::dropout(Variable(images(9, 1).to(first())))).data().item<double>());
    CHECK(optimizer.t() == static_cast<std::int64_t>(sizes.size()));
    for (const auto& p : net.collect_parameters())
        result.push_back(p.variable.data().template to_vector<double>());
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
    const auto learn = [](bool recorded) {
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
            if (i == 5) optimizer.setup(net);
            if (i == 10) net.to(cuda::host());
            if (i == 10) net.to(first());
            const Array batch[] = {images(4, 1).to(first()), labels(4).to(first())};
            losses.push_back((recorded ? step(batch) : body(batch))[0].item<double>());
        }
        CHECK(optimizer.t() == 11);
        return losses;
    };
    CHECK(learn(true) == learn(false));
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

    // A few launches: one for each dtype, and for each of so many tensors as fit.
    if (!Capture::supported(first())) return;
    optimizers::SGD plain;
    plain.setup(parameters[1]);
    const Capture capture(Stream(first()), [&] { plain.update(); });
    CHECK(capture.size() <= 6);
}
