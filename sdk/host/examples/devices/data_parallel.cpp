// A replica of a net on each of two GPUs: each trains on one half of every minibatch.
// Usage: data_parallel FOLDER (of digits)
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

std::pair<Variable, Variable> forward(const FunctionSet& model, const Array& x_data,
                                      const Array& t_data) {
    const Variable x = as_variable(x_data), t = as_variable(t_data);
    const Variable h1 = F::relu(model["l1"](x));
    const Variable h2 = F::relu(model["l2"](h1));
    const Variable y = model["l3"](h2);
    return {F::softmax_cross_entropy(y, t), F::accuracy(y, t)};
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: data_parallel FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    // [copies]
    FunctionSet model{{"l1", links::Linear(784, 100)},
                      {"l2", links::Linear(100, 100)},
                      {"l3", links::Linear(100, 10)}};
    const FunctionSet model_0 = deep_copy(model).to_gpu(0);  // the master
    const FunctionSet& model_1 = model.to_gpu(1);
    optimizers::SGD optimizer(0.05);
    optimizer.setup(model_0.collect_parameters());
    // [/copies]
    Minibatches batches(digits.train, 100, 1);
    while (batches.epoch() < 5) {
        const auto batch = batches.next();
        // [loop]
        const auto x = F::split_axis(batch[0], 2, 0), t = F::split_axis(batch[1], 2, 0);
        optimizer.zero_grads();
        model_1.zerograds();
        const Variable loss_0 =
            forward(model_0, cuda::to_gpu(x[0], 0), cuda::to_gpu(t[0], 0)).first;
        const Variable loss_1 =  // runs in parallel with the first if the devices have queues
            forward(model_1, cuda::to_gpu(x[1], 1), cuda::to_gpu(t[1], 1)).first;
        loss_0.backward();
        loss_1.backward();
        optimizer.accumulate_grads(model_1.gradients());
        optimizer.update();
        model_1.copy_parameters_from(model_0.parameters());
        // [/loop]
    }
    const no_backprop_mode evaluation;
    const auto& test = digits.test.arrays;
    for (const int gpu : {0, 1}) {
        const Variable accuracy = forward(gpu == 0 ? model_0 : model_1, cuda::to_gpu(test[0], gpu),
                                          cuda::to_gpu(test[1], gpu))
                                      .second;
        std::printf("GPU %d, test accuracy: %.4f\n", gpu, accuracy.item());
    }
} catch (const Error& e) {
    std::fprintf(stderr, "data_parallel: %s\n", e.what());
    return 1;
}
