// Trains a net on handwritten digits. Usage: train_digits FOLDER
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

struct Mlp : Chain {
    links::Linear l1{784, 100}, l2{100, 10};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
};

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: train_digits FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    Mlp model;
    optimizers::SGD optimizer(/*lr=*/0.1);
    optimizer.setup(model);
    Minibatches batches(digits.train, /*batch_size=*/100, /*seed=*/1);
    while (batches.epoch() < 5) {
        const Arrays batch = batches.next();
        const Variable x = as_variable(batch[0]), t = as_variable(batch[1]);
        // the forward pass builds the graph
        const Variable loss = F::softmax_cross_entropy(model(x), t);
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
    const no_backprop_mode evaluation;
    const Variable x = as_variable(digits.test.arrays[0]), t = as_variable(digits.test.arrays[1]);
    std::printf("test accuracy: %.4f\n", F::accuracy(model(x), t).item());
} catch (const Error& e) {
    std::fprintf(stderr, "train_digits: %s\n", e.what());
    return 1;
}
