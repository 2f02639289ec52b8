// A net whose layers are divided over ranks, which compute the same as a whole net.
//
// usage: tensor_parallel [RANKS]     ranks are threads of this process; default 2
#include <catena/catena.hpp>
#include <catena/distributed.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace catena;
using namespace catena::distributed;
namespace F = catena::functions;

namespace {

struct Whole : Chain {
    links::Linear l1{8, 32}, l2{32, 3};
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2); }
};

// Each rank has some of the hidden units: rows of l1.W and columns of l2.W.
struct Divided : Chain {
    ColumnParallelLinear l1;
    RowParallelLinear l2;
    Divided(const Communicator& comm, const Whole& whole)
        : l1(comm, whole.l1), l2(comm, whole.l2) {}
    Variable operator()(const Variable& x) const override { return l2(F::relu(l1(x))); }
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2); }
};

// Returns the loss of the last of some steps. A parallel net needs no other loop or optimizer, since
// all ranks compute the same loss and each updates its part.
double train(Chain& net, const Array& x, const Array& t) {
    optimizers::MomentumSGD optimizer(0.1);
    optimizer.setup(net);
    double last = 0;
    for (int step = 0; step < 20; ++step) {
        const Variable loss = F::softmax_cross_entropy(net(as_variable(x)), as_variable(t));
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
        last = loss.item();
    }
    return last;
}

}  // namespace

int main(int argc, char** argv) try {
    const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
    seed(1);
    Whole whole;
    const Array x = random::normal({60, 8});
    std::vector<std::int32_t> labels;
    for (int i = 0; i < 60; ++i) labels.push_back(i % 3);
    const Array t = Array::from(std::span<const std::int32_t>(labels), {60});

    std::vector<double> losses(static_cast<std::size_t>(ranks));
    const Whole start = deep_copy(whole);
    run_ranks(ranks, [&](const Communicator& comm) {
        Divided net(comm, start);
        losses[static_cast<std::size_t>(comm.rank())] = train(net, x, t);
    });
    const double expected = train(whole, x, t);
    bool equal = true;
    for (const double loss : losses) {
        std::printf("loss %.6f, of the whole net %.6f\n", loss, expected);
        equal = equal && std::abs(loss - expected) < 1e-4;
    }
    return equal ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "tensor_parallel: %s\n", error.what());
    return 1;
}
