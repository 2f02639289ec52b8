// A net on two GPUs: two columns of six layers, connected after the third and the sixth.
// Usage: model_parallel FOLDER (of digits)
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

FunctionSet column() {
    using links::Linear;
    return {{"l1", Linear(784, 1000)},  {"l2", Linear(1000, 1000)}, {"l3", Linear(1000, 2000)},
            {"l4", Linear(2000, 1000)}, {"l5", Linear(1000, 1000)}, {"l6", Linear(1000, 10)}};
}

std::pair<Variable, Variable> forward(const FunctionSet& model, const Array& x_data,
                                      const Array& t_data) {
    const Variable x_0 = as_variable(cuda::to_gpu(x_data, 0));
    const Variable x_1 = as_variable(cuda::to_gpu(x_data, 1));
    const Variable t = as_variable(cuda::to_gpu(t_data, 0));

    const Variable h1_0 = F::relu(model["gpu0/l1"](x_0)), h1_1 = F::relu(model["gpu1/l1"](x_1));
    const Variable h2_0 = F::relu(model["gpu0/l2"](h1_0)), h2_1 = F::relu(model["gpu1/l2"](h1_1));
    Variable h3_0 = F::relu(model["gpu0/l3"](h2_0)), h3_1 = F::relu(model["gpu1/l3"](h2_1));

    // [bridge]
    h3_0 = h3_0 + F::copy(h3_1, 0);  // gradients are copied back
    h3_1 = F::copy(h3_0, 1);
    // [/bridge]

    const Variable h4_0 = F::relu(model["gpu0/l4"](h3_0)), h4_1 = F::relu(model["gpu1/l4"](h3_1));
    const Variable h5_0 = F::relu(model["gpu0/l5"](h4_0)), h5_1 = F::relu(model["gpu1/l5"](h4_1));
    const Variable h6_0 = F::relu(model["gpu0/l6"](h5_0)), h6_1 = F::relu(model["gpu1/l6"](h5_1));

    const Variable y = h6_0 + F::copy(h6_1, 0);
    return {F::softmax_cross_entropy(y, t), F::accuracy(y, t)};
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2)
        throw DataError("usage: model_parallel FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    // [setup]
    const FunctionSet model{{"gpu0", column().to_gpu(0)}, {"gpu1", column().to_gpu(1)}};
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model.collect_parameters());  // parameters of both
    // [/setup]
    Minibatches batches(digits.train, 100, 1);
    while (batches.epoch() < 2) {
        const auto batch = batches.next();
        optimizer.zero_grads();
        forward(model, batch[0], batch[1]).first.backward();
        optimizer.update();
    }
    const no_backprop_mode evaluation;
    const Variable accuracy = forward(model, digits.test.arrays[0], digits.test.arrays[1]).second;
    std::printf("test accuracy: %.4f\n", accuracy.item());
} catch (const Error& e) {
    std::fprintf(stderr, "model_parallel: %s\n", e.what());
    return 1;
}
