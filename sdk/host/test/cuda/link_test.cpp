// Tests of moving links, sets and optimizers: parameters, gradients, persistent values, state.
#include "gpus.hpp"

#include <memory>

using namespace gpus;

namespace {

struct Net : Chain {
    links::Linear l1{3, 4};
    links::BatchNormalization bn{4};
    links::Linear l2{4, 2};
    std::int64_t seen = 0;
    void visit(Visitor& v) override { v("l1", l1)("bn", bn)("l2", l2)("seen", seen); }
    Variable operator()(const Variable& x) override { return l2(F::tanh(bn(l1(x)))); }
};

// Has enough rows that gradients behind the normalization are not close to zero.
Variable input(Device device) {
    std::vector<float> x;
    for (int i = 0; i < 15; ++i) x.push_back(static_cast<float>(i * i % 11) / 4 - 1);
    return Variable(Array::from(x, {5, 3}, device));
}
void learn(Net& net, Optimizer& optimizer, int steps = 1) {
    for (int i = 0; i < steps; ++i) {
        const Variable y = net(input(net.l1.W.device()));
        optimizer.cleargrads();
        F::sum(y * y).backward();
        optimizer.update();
    }
}
FunctionSet make() {
    return {{"l1", links::Linear(3, 4)}, {"in", FunctionSet{{"l2", links::Linear(4, 2)}}}};
}
bool all_on(const Link& link, Device device) {
    bool all = true;
    for (const Variable& p : link.parameters()) all = all && p.device() == device;
    return all;
}

}  // namespace

TEST_CASE("a link moves with gradients and persistent values, and back") {
    const SameDevice same;
    Net net;
    net.seen = 5;
    {
        const Variable y = net(input(cuda::host()));
        F::sum(y * y).backward();
    }
    const Floats weights = values(net);
    const Variable w = net.l1.W;
    const Floats grad = values(w.grad());
    const Floats mean = values(net.bn.avg_mean);
    for (const int id : {0, second_id()}) {  // from the host, then from another GPU
        CHECK(&net.to_gpu(id) == &net);
        const Device device = cuda::get_device(id);
        CHECK(all_on(net, device));
        CHECK(net.l1.W.node_ref() == w.node_ref());
        CHECK(w.grad().device() == device);
        CHECK(values(w.grad()) == grad);
        CHECK(net.bn.avg_mean.device() == device);
        CHECK(values(net.bn.avg_mean) == mean);
        CHECK(net.seen == 5);
        CHECK(values(net) == weights);
        CHECK(net(input(device)).device() == device);
        net.bn.avg_mean.copy_from(Array::from(mean, {4}, cuda::host()));
    }
    CHECK(&net.to_cpu() == &net);
    CHECK(all_on(net, cuda::host()));
    CHECK(values(net) == weights);
    net.to_gpu();
    CHECK(all_on(net, first()));
    {
        const cuda::using_device scope(second_id());
        net.to_gpu();
        CHECK(all_on(net, second()));
        net.to_cpu();
        CHECK(all_on(net, cuda::host()));
    }
    net.to_gpu(w.data().to(second()));
    CHECK(all_on(net, second()));
}

TEST_CASE("what is refused changes nothing") {
    const SameDevice same;
    Net net;
    CHECK_THROWS_AS(net.to_gpu(99), DeviceError);
    CHECK_THROWS_AS(net.to_gpu(cuda::host()), InvalidError);
    const Variable y = net(input(cuda::host()));
    CHECK_THROWS_AS(net.to_gpu(0), GraphError);
    CHECK(all_on(net, cuda::host()));
    F::sum(y).backward();
}

TEST_CASE("moved links are what they were: sets in sets, copies, temporaries") {
    const SameDevice same;
    FunctionSet set = make();
    CHECK(&set.to_gpu(second_id()) == &set);
    CHECK(&set.to_cpu() == &set);
    const FunctionSet temporary = make().to_gpu(second_id());
    CHECK(all_on(temporary, second()));
    CHECK(all_on(make().to_gpu().to_cpu(), cuda::host()));
    const FunctionSet model{
        {"gpu0", make().to_gpu(0)}, {"gpu1", make().to_gpu(second_id())}, {"gpu2", set}};
    CHECK(all_on(model["gpu0"], first()));
    CHECK(all_on(model["gpu1/in"], second()));
    CHECK(model.get<FunctionSet>("gpu2").get<links::Linear>("l1").W.node_ref() ==
          set.get<links::Linear>("l1").W.node_ref());
    CHECK(model.collect_parameters().size() == 12);
    // cuda::to_gpu() keeps the type of the link.
    const Net net = cuda::to_gpu(Net(), second_id());
    CHECK(all_on(net, second()));
    Net own;
    Net& moved = cuda::to_gpu(own);
    CHECK(&moved == &own);
    CHECK(&cuda::to_cpu(own) == &own);
    const FunctionSet of_links{{"a", cuda::to_gpu(links::Linear(2, 2), second_id())},
                               {"b", cuda::to_cpu(cuda::to_gpu(links::Linear(2, 2)))}};
    CHECK(all_on(of_links["a"], second()));
    CHECK(all_on(of_links["b"], cuda::host()));
}

TEST_CASE("a deep copy on another GPU computes the same and shares nothing") {
    const SameDevice same;
    seed(1);
    Net net;
    Net copy = cuda::to_gpu(deep_copy(net), second_id());
    net.to_gpu(0);
    CHECK(all_on(copy, second()));
    CHECK(all_on(net, first()));
    CHECK(values(copy) == values(net));
    const Variable here = net(input(first()));
    const Variable there = copy(input(second()));
    gradient_check::assert_allclose(cuda::to_cpu(there.data()), cuda::to_cpu(here.data()));
    F::sum(here * here).backward();
    F::sum(there * there).backward();
    optimizers::SGD sgd(0.1);
    sgd.setup(net);
    const Floats before = values(copy);
    // Gradients are accumulated in net, and its parameters are copied back.
    sgd.accumulate_grads(copy.gradients());
    sgd.update();
    CHECK(values(copy) == before);
    CHECK(values(net) != before);
    copy.copy_parameters_from(net.parameters());
    CHECK(values(copy) == values(net));
    CHECK(all_on(copy, second()));
    net.cleargrads();
    copy.zerograds();
    net.add_gradients(copy);
    for (const Array& grad : net.gradients()) CHECK(grad.device() == first());
    const FunctionSet set = make();
    const FunctionSet set_copy = deep_copy(set).to_gpu(second_id());
    CHECK(all_on(set_copy, second()));
    CHECK(all_on(set, cuda::host()));
}

TEST_CASE("an optimizer goes on where its parameters went") {
    const SameDevice same;
    const auto make_optimizer = [](int kind) -> std::unique_ptr<Optimizer> {
        if (kind == 0) return std::make_unique<optimizers::Adam>(0.1);
        if (kind == 1) return std::make_unique<optimizers::MomentumSGD>(0.1);
        if (kind == 2) return std::make_unique<optimizers::AdaDelta>();
        return std::make_unique<optimizers::SGD>(0.1);
    };
    for (const int kind : {0, 1, 2, 3}) {
        CAPTURE(kind);
        seed(2);
        Net stays;
        Net moves = deep_copy(stays);
        const auto a = make_optimizer(kind);
        const auto b = make_optimizer(kind);
        a->setup(stays);
        b->setup(moves);
        for (const int where : {0, second_id(), -1}) {
            learn(stays, *a, 2);
            learn(moves, *b, 2);
            if (where < 0) moves.to_cpu();
            else moves.to_gpu(where);
        }
        learn(stays, *a);
        learn(moves, *b);
        CHECK(b->t() == 7);
        gradient_check::assert_allclose(moves.l1.W.data(), stays.l1.W.data());
        gradient_check::assert_allclose(moves.bn.avg_var, stays.bn.avg_var);
    }
}

TEST_CASE("a snapshot of one device is loaded on another") {
    const SameDevice same;
    const TemporaryFolder folder;
    const auto file = folder.path / "net.npz";
    struct Run : Visitable {
        Net net;
        optimizers::Adam adam{0.1};
        void visit(Visitor& v) override { v("net", net)("adam", adam); }
    };
    Run saved;
    saved.net.to_gpu(second_id());
    saved.adam.setup(saved.net);
    learn(saved.net, saved.adam, 3);
    save_npz(file, saved);
    for (const int where : {-1, 0, second_id()}) {
        CAPTURE(where);
        Run loaded;
        if (where >= 0) loaded.net.to_gpu(where);
        loaded.adam.setup(loaded.net);
        load_npz(file, loaded);
        CHECK(values(loaded.net) == values(saved.net));
        CHECK(all_on(loaded.net, where < 0 ? cuda::host() : cuda::get_device(where)));
        CHECK(loaded.adam.t() == 3);
        Run goes_on;
        goes_on.net.to_gpu(second_id());
        goes_on.adam.setup(goes_on.net);
        load_npz(file, goes_on);
        learn(loaded.net, loaded.adam);
        learn(goes_on.net, goes_on.adam);
        gradient_check::assert_allclose(cuda::to_cpu(loaded.net.l1.W.data()),
                                        cuda::to_cpu(goes_on.net.l1.W.data()));
    }
}
