// One GPU: moves the net and every minibatch there; nothing else changes.
// Usage: single_gpu FOLDER (of digits)
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: single_gpu FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    // [single]
    FunctionSet model = FunctionSet{{"l1", links::Linear(784, 100)},
                                    {"l2", links::Linear(100, 100)},
                                    {"l3", links::Linear(100, 10)}}
                            .to_gpu();  // the current GPU; to_gpu(1) is the second
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model.collect_parameters());

    const auto forward = [&](const Array& x_data, const Array& t_data) {
        const Variable x = as_variable(x_data), t = as_variable(t_data);
        const Variable h1 = F::relu(model["l1"](x));
        const Variable h2 = F::relu(model["l2"](h1));
        const Variable y = model["l3"](h2);
        return std::pair(F::softmax_cross_entropy(y, t), F::accuracy(y, t));
    };
    Minibatches batches(digits.train, 100, 1);
    while (batches.epoch() < 5) {
        const auto batch = batches.next();
        optimizer.zero_grads();
        const auto [loss, accuracy] = forward(cuda::to_gpu(batch[0]), cuda::to_gpu(batch[1]));
        loss.backward();
        optimizer.update();
    }
    // [/single]
    const no_backprop_mode evaluation;
    const auto& test = digits.test.arrays;
    const Variable accuracy = forward(cuda::to_gpu(test[0]), cuda::to_gpu(test[1])).second;
    std::printf("on %s, test accuracy: %.4f\n", accuracy.device().name().c_str(), accuracy.item());
} catch (const Error& e) {
    std::fprintf(stderr, "single_gpu: %s\n", e.what());
    return 1;
}
