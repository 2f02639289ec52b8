// Tests of training on two GPUs as on one: a net split over both, and a copy of a net on each.
#include "gpus.hpp"

using namespace gpus;

namespace {

using Linear = links::Linear;

constexpr std::int64_t n_in = 12, units = 10, wide = 20, classes = 4, batch = 8;

struct Batch {
    Array x, t;
};
Batch draw(std::uint64_t step) {
    Generator generator(step + 17);
    std::vector<double> x(static_cast<std::size_t>(batch * n_in));
    generator.normal(x);
    std::vector<std::int32_t> t;
    for (std::int64_t i = 0; i < batch; ++i) {
        t.push_back(static_cast<std::int32_t>(generator.below(classes)));
    }
    return {Array::from(x, {batch, n_in}, cuda::host()).astype(Dtype::float32),
            Array::from(t, {batch}, cuda::host())};
}

FunctionSet column() {
    return {{"l1", Linear(n_in, units)},  {"l2", Linear(units, units)},
            {"l3", Linear(units, wide)},  {"l4", Linear(wide, units)},
            {"l5", Linear(units, units)}, {"l6", Linear(units, classes)}};
}

struct Result {
    Variable loss, accuracy;
};

// Six layers in two columns, which exchange their activations after the third and the sixth layer.
Result forward_columns(const FunctionSet& model, const Batch& data, Device gpu0, Device gpu1) {
    const Variable x_0(data.x.to(gpu0)), x_1(data.x.to(gpu1)), t(data.t.to(gpu0));
    const auto layer = [&](const char* name, const Variable& x) { return F::relu(model[name](x)); };
    const Variable h1_0 = layer("gpu0/l1", x_0), h1_1 = layer("gpu1/l1", x_1);
    const Variable h2_0 = layer("gpu0/l2", h1_0), h2_1 = layer("gpu1/l2", h1_1);
    Variable h3_0 = layer("gpu0/l3", h2_0), h3_1 = layer("gpu1/l3", h2_1);
    h3_0 = h3_0 + F::copy(h3_1, gpu0);
    h3_1 = F::copy(h3_0, gpu1);
    const Variable h4_0 = layer("gpu0/l4", h3_0), h4_1 = layer("gpu1/l4", h3_1);
    const Variable h5_0 = layer("gpu0/l5", h4_0), h5_1 = layer("gpu1/l5", h4_1);
    const Variable h6_0 = layer("gpu0/l6", h5_0), h6_1 = layer("gpu1/l6", h5_1);
    const Variable y = h6_0 + F::copy(h6_1, gpu0);
    return {F::softmax_cross_entropy(y, t), F::accuracy(y, t)};
}

Floats train_columns(Device gpu0, Device gpu1) {
    seed(11);
    FunctionSet left = column(), right = column();
    FunctionSet model{{"gpu0", left.to_gpu(gpu0)}, {"gpu1", right.to_gpu(gpu1)}};
    optimizers::MomentumSGD optimizer(0.1);
    optimizer.setup(model.collect_parameters());
    for (std::uint64_t step = 0; step < 10; ++step) {
        optimizer.zero_grads();
        const Result result = forward_columns(model, draw(step), gpu0, gpu1);
        CHECK(result.loss.device() == gpu0);
        result.loss.backward();
        optimizer.update();
    }
    for (const char* side : {"gpu0", "gpu1"}) {
        for (const Variable& p : model[side].parameters()) {
            CHECK(p.device() == (side == std::string("gpu0") ? gpu0 : gpu1));
        }
    }
    return values(model);
}

FunctionSet three_layers() {
    return {
        {"l1", Linear(n_in, units)}, {"l2", Linear(units, units)}, {"l3", Linear(units, classes)}};
}
Variable loss_of(const FunctionSet& model, const Array& x_data, const Array& t_data) {
    const Variable x(x_data), t(t_data);
    const Variable h = F::relu(model["l2"](F::relu(model["l1"](x))));
    return F::softmax_cross_entropy(model["l3"](h), t);
}
void check_near(const Floats& got, const Floats& expected, double tolerance) {
    REQUIRE(got.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        worst = std::max(worst, std::abs(double{got[i]} - double{expected[i]}));
    }
    CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("model-parallel: a net over two GPUs learns as on one") {
    const SameDevice same;
    const Floats one = train_columns(first(), first());
    check_near(train_columns(first(), second()), one, 1e-6);
    check_near(train_columns(second(), first()), one, 1e-6);
    // Training depends on the initial numbers: other ones give other parameters.
    seed(11);
    FunctionSet left = column(), right = column();
    CHECK(values(FunctionSet{{"gpu0", left}, {"gpu1", right}}) != one);
}

TEST_CASE("data-parallel: halves of a minibatch on two GPUs learn as the whole on one") {
    const SameDevice same;
    seed(12);
    FunctionSet model = three_layers();
    FunctionSet whole = deep_copy(model).to_gpu(0);
    FunctionSet model_0 = deep_copy(model).to_gpu(0);
    FunctionSet& model_1 = model.to_gpu(second_id());
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model_0.collect_parameters());
    // The sum of the gradients of two half-batch means is twice the gradient of the whole mean.
    optimizers::SGD alone(0.2);
    alone.setup(whole);
    const Floats start = values(whole);
    for (std::uint64_t step = 0; step < 10; ++step) {
        const Batch data = draw(step);
        const auto x = F::split_axis(data.x, 2, 0), t = F::split_axis(data.t, 2, 0);
        optimizer.zero_grads();
        model_1.zerograds();
        loss_of(model_0, cuda::to_gpu(x[0], 0), cuda::to_gpu(t[0], 0)).backward();
        loss_of(model_1, cuda::to_gpu(x[1], second_id()), cuda::to_gpu(t[1], second_id()))
            .backward();
        optimizer.accumulate_grads(model_1.gradients());
        optimizer.update();
        model_1.copy_parameters_from(model_0.parameters());

        alone.zero_grads();
        loss_of(whole, cuda::to_gpu(data.x, 0), cuda::to_gpu(data.t, 0)).backward();
        alone.update();
    }
    CHECK(values(model_0) == values(model_1));
    check_near(values(model_0), values(whole), 1e-5);
    CHECK(values(whole) != start);
    for (const Variable& p : model_1.parameters()) CHECK(p.device() == second());
}
