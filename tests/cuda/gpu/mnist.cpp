// gpu-mnist: trains a network on a GPU, call by call and with a recording. The accuracy must be
// about that of training on the CPU, and a snapshot must keep its accuracy on the other device.
//
// usage: gpu-mnist --data FOLDER [--model mlp|cnn] [--device NAME] [--images N] [--epochs N] [--units N]
// CATENA_MNIST in the environment overrides --data.
#include "arguments.hpp"

#include <catena/catena.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include <unistd.h>

using namespace catena;
namespace F = catena::functions;
namespace L = catena::links;

namespace {

struct Mlp : Chain {
    L::Linear l1, l2, l3;
    explicit Mlp(std::int64_t units) : l1(784, units), l2(units, units), l3(units, 10) {}
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }
    Variable operator()(const Variable& x) override { return l3(F::relu(l2(F::relu(l1(x))))); }
};

struct Cnn : Chain {
    L::Convolution2D conv1{1, 8, 5}, conv2{8, 16, 5};
    L::Linear l1, l2;
    explicit Cnn(std::int64_t units) : l1(256, units), l2(units, 10) {}
    void visit(Visitor& v) override { v("conv1", conv1)("conv2", conv2)("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override {
        const Variable images = F::reshape(x, {x.shape()[0], 1, 28, 28});
        const Variable edges = F::max_pooling_2d(F::relu(conv1(images)), {2});
        return l2(F::relu(l1(F::max_pooling_2d(F::relu(conv2(edges)), {2}))));
    }
};
std::unique_ptr<Chain> make(const std::string& model, std::int64_t units) {
    if (model == "cnn") return std::make_unique<Cnn>(units);
    if (model == "mlp") return std::make_unique<Mlp>(units);
    throw InvalidError("--model: expected mlp or cnn, got " + model);
}

struct Run {
    std::unique_ptr<Chain> model;
    std::vector<double> losses;  // of the first steps
    double accuracy = 0;
    double seconds = 0;
};

Dataset first(const Dataset& data, std::int64_t n) {
    return {Minibatches(data, n, 0, false).next()};
}

double accuracy_of(Chain& model, const Dataset& test, Device device) {
    const no_backprop_mode evaluation;
    const Variable x = as_variable(test.arrays[0].to(device));
    return F::accuracy(model(x), as_variable(test.arrays[1].to(device))).data().item<double>();
}

struct Plan {
    std::string model;
    std::int64_t units, epochs;
};
Run train(Device device, const Dataset& images, const Dataset& test, const Plan& plan,
          bool recorded) {
    const auto start = std::chrono::steady_clock::now();
    seed(1);
    Run result;
    result.model = make(plan.model, plan.units);
    Chain& model = *result.model;
    model.to(device);
    optimizers::Adam optimizer;
    optimizer.setup(model);
    Minibatches batches(images, 20, 1, true, device);
    const auto learn = [&](std::span<const Array> batch) -> std::vector<Array> {
        const Variable loss =
            F::softmax_cross_entropy(model(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
        return {loss.data()};
    };
    RecordedStep step(optimizer, learn);
    while (batches.epoch() < plan.epochs) {
        const auto batch = batches.next();
        const Array loss = recorded ? step(batch)[0] : learn(batch)[0];
        if (result.losses.size() < 10) result.losses.push_back(loss.item<double>());
    }
    device.synchronize();
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.accuracy = accuracy_of(model, test, device);
    return result;
}

bool alike(const char* what, const Run& a, const Run& b, double tolerance) {
    bool good = true;
    for (std::size_t i = 0; i < a.losses.size(); ++i) {
        if (std::abs(a.losses[i] - b.losses[i]) <= 1e-3 * std::abs(a.losses[i])) continue;
        fmt::print("{}, step {}: expected a loss of {:.6f}, got {:.6f}\n", what, i, a.losses[i],
                   b.losses[i]);
        good = false;
    }
    if (std::abs(a.accuracy - b.accuracy) > tolerance) {
        fmt::print("{}: expected an accuracy of {:.4f}, to within {:.4f}, got {:.4f}\n", what,
                   a.accuracy, tolerance, b.accuracy);
        good = false;
    }
    return good;
}

// Saves the model of a run, loads it on another device and returns its accuracy there.
double taken_to(Device device, const Run& run, const Plan& plan, const Dataset& test) {
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("gpu-mnist-{}.npz", getpid()))
            .string();
    save_npz(file, *run.model);
    const auto model = make(plan.model, plan.units);
    model->to(device);
    load_npz(file, *model);
    std::filesystem::remove(file);
    return accuracy_of(*model, test, device);
}

int run(const Arguments& arguments) {
    const Device device = Device::get(arguments.text("device"));
    const char* const wanted = std::getenv("CATENA_MNIST");
    const Mnist digits = load_mnist(wanted != nullptr ? wanted : arguments.text("data"));
    const auto n = arguments.number<std::int64_t>("images");
    const Dataset images = first(digits.train, n), test = first(digits.test, n);
    const Plan plan = {arguments.text("model"), arguments.number<std::int64_t>("units"),
                       arguments.number<std::int64_t>("epochs")};
    const Device cpu = Device::current();
    const Run here = train(cpu, images, test, plan, false);
    const Run there = train(device, images, test, plan, false);
    const Run recorded = train(device, images, test, plan, true);

    // Two runs with different seeds on one device differ by about as much.
    const double tolerance = 0.01 + 1 / static_cast<double>(test.size());
    bool good = alike("on the GPU", here, there, tolerance);
    good = alike("recorded", there, recorded, tolerance) && good;
    const double back = taken_to(cpu, there, plan, test);
    const double again = taken_to(device, here, plan, test);
    for (const auto& [got, expected] : {std::pair(back, there.accuracy), {again, here.accuracy}}) {
        if (std::abs(got - expected) <= 1.5 / static_cast<double>(test.size())) continue;
        fmt::print("a snapshot on the other device: expected an accuracy of {:.4f}, got {:.4f}\n",
                   expected, got);
        good = false;
    }
    fmt::print(
        "measured: {}, {} images, accuracy {:.4f}, recorded {:.4f}, on the CPU {:.4f}; "
        "{:.2f} s, {:.2f} s, {:.2f} s\n",
        plan.model, images.size(), there.accuracy, recorded.accuracy, here.accuracy, there.seconds,
        recorded.seconds, here.seconds);
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    return run(Arguments(argc, argv,
                         {{"data", ""},
                          {"model", "mlp"},
                          {"device", "cuda:0"},
                          {"images", "1000000"},
                          {"epochs", "5"},
                          {"units", "100"}}));
} catch (const std::exception& error) {
    fmt::print(stderr, "gpu-mnist: {}\n", error.what());
    return 2;
}
