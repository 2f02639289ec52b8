// Tests of parameters with several names: tied weights, and nets with two inputs.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cmath>

using namespace catena;
namespace F = catena::functions;

namespace {

using Floats = std::vector<float>;

// Both layers have the same parameters: y = (x W^T + b) W^T + b.
struct Tied : Chain {
    links::Linear l1{2, 2};
    links::Linear l2{l1};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override { return l2(l1(x)); }
};
struct Untied : Chain {
    links::Linear l1{2, 2};
    links::Linear l2{2, 2};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
};
struct SameName : Chain {
    links::Linear l1{2, 2};
    links::Linear l2{2, 2};
    void visit(Visitor& v) override { v("l", l1)("l", l2); }
};

std::vector<std::string> names(const Link& link) {
    std::vector<std::string> result;
    for (const auto& parameter : link.collect_parameters()) result.push_back(parameter.name);
    return result;
}

Floats floats(const Variable& v) { return v.data().to_vector<float>(); }

}  // namespace

TEST_CASE("tied parameters are listed, counted and given gradients once") {
    Tied net;
    CHECK(names(net) == std::vector<std::string>{"l1/W", "l1/b"});
    CHECK(net.count_parameters() == 6);
    CHECK(net.gradients().size() == 2);
    const Untied other;
    CHECK_THROWS_AS(net.copy_parameters_from(other), ShapeError);
}

TEST_CASE("tied parameters take one step, the gradient being the sum over both places") {
    Tied net;
    net.l1.W.data().copy_from(Array::from({1.F, 2.F, 3.F, 4.F}, {2, 2}));
    net.l1.b.data().fill(0);
    F::sum(net(as_variable(Array::from({1.F, -1.F}, {1, 2})))).backward();
    // h = W x = (-1, -1); d sum(W h) / dW = outer(1, h) + outer(W^T 1, x), d/db = 1 + W^T 1.
    CHECK(net.l2.W.grad().to_vector<float>() == Floats{3, -5, 5, -7});
    CHECK(net.l2.b.grad().to_vector<float>() == Floats{5, 7});
    optimizers::SGD sgd(1);
    sgd.setup(net);
    const double norm = std::sqrt(9. + 25 + 25 + 49 + 25 + 49);
    CHECK(sgd.compute_grads_norm() == doctest::Approx(norm).epsilon(1e-15));
    sgd.update();
    CHECK(floats(net.l1.W) == Floats{-2, 7, -2, 11});
    CHECK(floats(net.l2.b) == Floats{-5, -7});
    sgd.clip_grads(norm / 2);
    CHECK(net.l1.W.grad().to_vector<float>() == Floats{1.5F, -2.5F, 2.5F, -3.5F});
    net.cleargrads();
    sgd.weight_decay(0.5);
    CHECK(net.l1.W.grad().to_vector<float>() == Floats{-1, 3.5F, -1, 5.5F});
    // With momentum: a second name does not change the steps.
    for (const bool twice : {true, false}) {
        links::Linear l(2, 2);
        l.W.data().fill(1);
        l.W.set_grad(Array::ones({2, 2}));
        optimizers::MomentumSGD momentum(0.5);
        auto parameters = l.collect_parameters();
        if (twice) parameters.push_back({"again", l.W});
        momentum.setup(parameters);
        momentum.update();
        momentum.update();
        CHECK(floats(l.W) == Floats(4, 1 - 0.5F - 0.95F));
    }
}

TEST_CASE("a name that stands for two parameters is an error before anything is learned") {
    const SameName net;
    contains(error_of<InvalidError>([&] { (void)net.parameters(); }),
             "[parameters] names: expected one for each parameter, got l/W for two");
    const Tied fine;
    optimizers::Adam adam;
    adam.setup(fine);
    fine.zerograds();
    adam.update();
    CHECK_THROWS_AS(adam.setup(net), InvalidError);
    auto parameters = fine.collect_parameters();
    parameters.push_back({"l1/W", Variable(Array::zeros({1}))});
    CHECK_THROWS_AS(adam.setup(parameters), InvalidError);
    CHECK(adam.t() == 1);
    adam.update();  // the optimizer still has its old parameters
}

TEST_CASE("a Siamese net learns one branch from two inputs") {
    seed(5);
    const links::Linear branch(3, 2);
    FunctionSet net{{"left", branch}, {"right", branch}};
    CHECK(names(net) == std::vector<std::string>{"left/W", "left/b"});
    const auto distance = [](FunctionSet& model) {
        const Variable a = model["left"](as_variable(Array::from({1.F, 0.F, 2.F}, {1, 3})));
        const Variable b = model["right"](as_variable(Array::from({0.F, 1.F, -1.F}, {1, 3})));
        return F::sum((a - b) * (a - b));
    };
    optimizers::SGD sgd(0.02);
    sgd.setup(net);
    double before = distance(net).data().item<double>();
    for (int i = 0; i < 10; ++i) {
        sgd.cleargrads();
        distance(net).backward();
        // One plain gradient step in all, not one for each name.
        const float w = floats(branch.W)[4];
        const float g = branch.W.grad().to_vector<float>()[4];
        sgd.update();
        CHECK(floats(branch.W)[4] == doctest::Approx(w - 0.02F * g).epsilon(1e-6));
        const double after = distance(net).data().item<double>();
        CHECK(after < before);
        before = after;
    }
    CHECK(before < 0.1);
}

TEST_CASE("what is tied stays tied in a deep copy, on another device and in another dtype") {
    Tied net;
    Tied copy = deep_copy(net);
    CHECK(copy.l1.W.node_ref() == copy.l2.W.node_ref());
    CHECK(copy.l1.W.node_ref() != net.l1.W.node_ref());
    net.zerograds();
    net.to(Device::get("cpu:1")).to(Dtype::float64);
    CHECK(net.l1.W.node_ref() == net.l2.W.node_ref());
    CHECK(net.l2.W.dtype() == Dtype::float64);
    CHECK(net.l2.W.grad().dtype() == Dtype::float64);
    CHECK(net.l2.W.device() == Device::get("cpu:1"));
    CHECK(copy.l2.W.dtype() == Dtype::float32);
}

TEST_CASE("tied parameters are saved under each name; either is enough to load them") {
    const TemporaryFolder folder;
    const auto file = folder.path / "a.npz";
    Tied net;
    save_npz(file, net);
    Untied separate;
    load_npz(file, separate);
    CHECK(floats(separate.l2.W) == floats(net.l1.W));
    Tied again;
    load_npz(file, again);
    CHECK(floats(again.l1.W) == floats(net.l1.W));

    struct Half : Visitable {
        links::Linear l{2, 2};
        std::string name;
        void visit(Visitor& v) override { v(name, l); }
    } half;
    for (const char* name : {"l1", "l2"}) {
        half.name = name;
        half.l.W.data().fill(name[1]);
        save_npz(file, half);
        load_npz(file, again);
        CHECK(floats(again.l1.W) == Floats(4, static_cast<float>(name[1])));
    }
    // Two different arrays cannot be loaded into one parameter; neither can none.
    separate.l2.W.data().fill(9);
    save_npz(file, separate);
    contains(error_of<DataError>([&] { load_npz(file, again); }),
             "l2/W: expected the same values as l1/W, got others");
    half.name = "l3";
    save_npz(file, half);
    const auto text = error_of<DataError>([&] { load_npz(file, again); });
    contains(text, "l1/W: missing");
    contains(text, "l3/W: not expected");
    CHECK(floats(again.l1.W) == Floats(4, '2'));
    // The optimizer's state is saved under the first name.
    optimizers::MomentumSGD momentum;
    momentum.setup(net);
    save_npz(file, momentum);
    optimizers::MomentumSGD other;
    other.setup(again);
    load_npz(file, other);
    CHECK(load_arrays(file).contains("l1/W/v"));
    CHECK_FALSE(load_arrays(file).contains("l2/W/v"));
}
