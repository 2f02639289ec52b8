// gpu-mnist: a net trained on a GPU gets to the accuracy that it gets to on the CPU.
//
// usage: gpu-mnist --data FOLDER [--device NAME] [--images N] [--epochs N] [--units N]
// CATENA_MNIST in the environment goes before --data.
#include "arguments.hpp"

#include <catena/catena.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

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

struct Run {
    std::vector<double> losses;  // of the first steps
    double accuracy = 0;
    double seconds = 0;
};

Dataset first(const Dataset& data, std::int64_t n) {
    return {Minibatches(data, n, 0, false).next()};
}

Run train(Device device, const Dataset& images, const Dataset& test, std::int64_t units,
          std::int64_t epochs) {
    const auto start = std::chrono::steady_clock::now();
    seed(1);
    Mlp model(units);
    model.to(device);
    optimizers::Adam optimizer;
    optimizer.setup(model);
    Minibatches batches(images, 100, 1, true, device);
    Run result;
    while (batches.epoch() < epochs) {
        const auto batch = batches.next();
        const Variable loss =
            F::softmax_cross_entropy(model(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
        if (result.losses.size() < 10) result.losses.push_back(loss.data().item<double>());
    }
    device.synchronize();
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const no_backprop_mode evaluation;
    const Variable x = as_variable(test.arrays[0].to(device));
    result.accuracy =
        F::accuracy(model(x), as_variable(test.arrays[1].to(device))).data().item<double>();
    return result;
}

int run(const Arguments& arguments) {
    const Device device = Device::get(arguments.text("device"));
    const char* const wanted = std::getenv("CATENA_MNIST");
    const Mnist digits = load_mnist(wanted != nullptr ? wanted : arguments.text("data"));
    const auto n = arguments.number<std::int64_t>("images");
    const Dataset images = first(digits.train, n), test = first(digits.test, n);
    const auto units = arguments.number<std::int64_t>("units");
    const auto epochs = arguments.number<std::int64_t>("epochs");
    const Run here = train(Device::current(), images, test, units, epochs);
    const Run there = train(device, images, test, units, epochs);

    bool good = true;
    for (std::size_t i = 0; i < here.losses.size(); ++i) {
        if (std::abs(here.losses[i] - there.losses[i]) <= 1e-3 * std::abs(here.losses[i])) continue;
        fmt::print("step {}: expected a loss of {:.6f} as on {}, got {:.6f}\n", i, here.losses[i],
                   Device::current().name(), there.losses[i]);
        good = false;
    }
    // As far apart as two runs on one device with other seeds are.
    const double tolerance = 0.01 + 1 / static_cast<double>(test.size());
    if (std::abs(there.accuracy - here.accuracy) > tolerance) {
        fmt::print("expected an accuracy of {:.4f} as on the CPU, to within {:.4f}, got {:.4f}\n",
                   here.accuracy, tolerance, there.accuracy);
        good = false;
    }
    fmt::print(
        "measured: {} images, accuracy {:.4f}, {:.4f} on the CPU; {:.2f} s, {:.2f} s on the CPU\n",
        images.size(), there.accuracy, here.accuracy, there.seconds, here.seconds);
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    return run(Arguments(argc, argv,
                         {{"data", ""},
                          {"device", "cuda:0"},
                          {"images", "1000000"},
                          {"epochs", "5"},
                          {"units", "100"}}));
} catch (const std::exception& error) {
    fmt::print(stderr, "gpu-mnist: {}\n", error.what());
    return 2;
}
