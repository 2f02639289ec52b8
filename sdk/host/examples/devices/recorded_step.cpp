// Repeats a training step in one GPU launch. Usage: recorded_step FOLDER (of digits)
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

struct Mlp : Chain {
    links::Linear l1{784, 50}, l2{50, 10};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: recorded_step FOLDER, as in PREFIX/share/catena/digits");
    const Mnist digits = load_mnist(argv[1]);
    const cuda::using_device scope(0);  // for the net, the minibatches and the step
    Mlp net;
    // [step]
    optimizers::Adam optimizer;
    optimizer.setup(net);
    RecordedStep step(optimizer, [&](ArraySpan batch) -> Arrays {
        const Variable loss =
            F::softmax_cross_entropy(net(as_variable(batch[0])), as_variable(batch[1]));
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
        return {loss.data()};
    });
    Minibatches batches(digits.train, 100, 1);
    while (batches.epoch() < 3) {
        optimizer.alpha = 0.001 / static_cast<double>(1 + batches.epoch());
        step(batches.next());
    }
    // [/step]
    const no_backprop_mode evaluation;
    const Variable y = net(as_variable(cuda::to_gpu(digits.test.arrays[0])));
    const Variable t = as_variable(cuda::to_gpu(digits.test.arrays[1]));
    const double accuracy = F::accuracy(y, t).item();
    std::printf("%zu recordings, test accuracy: %.4f\n", step.recordings(), accuracy);
    return accuracy >= 0.85 ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "recorded_step: %s\n", e.what());
    return 1;
}
