// Trains a net on handwritten digits in several processes.
// Usage: mpirun -n 2 train_digits_together FOLDER
#include <catena/catena.hpp>
#include <catena/distributed.hpp>

#include <cstdio>

using namespace catena;
using namespace catena::distributed;
namespace F = catena::functions;

struct Mlp : Chain {
    links::Linear l1{784, 100}, l2{100, 10};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
};

int main(int argc, char** argv) try {
    if (argc != 2) throw DataError("usage: train_digits_together FOLDER");
    const Communicator comm = Communicator::open("mpi");  // 1
    const Share share{comm.rank(), comm.size()};          // 2
    const Mnist digits = load_mnist(argv[1]);
    Mlp model;
    optimizers::SGD sgd(/*lr=*/0.1);
    MultiNodeOptimizer optimizer(sgd, comm);  // 3
    optimizer.setup(model);                   // 4
    Minibatches batches(digits.train, /*batch_size=*/100, /*seed=*/1);
    batches.set_share(share);  // 5
    while (batches.epoch() < 5) {
        const Arrays batch = batches.next();
        const Variable x = as_variable(batch[0]), t = as_variable(batch[1]);
        const Variable loss = F::softmax_cross_entropy(model(x), t);
        optimizer.set_weight(batches.weight());  // 6
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
    if (comm.rank() != 0) return 0;  // 7
    const no_backprop_mode evaluation;
    const Variable x = as_variable(digits.test.arrays[0]), t = as_variable(digits.test.arrays[1]);
    std::printf("test accuracy: %.4f\n", F::accuracy(model(x), t).item());
} catch (const Error& e) {
    std::fprintf(stderr, "train_digits_together: %s\n", e.what());
    return 1;
}
