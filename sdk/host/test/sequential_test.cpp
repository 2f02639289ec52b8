// Tests of ChainList, Sequential and MLP: order, paths, copies, saved files.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::string>;
using links::Linear;

Names names(const Link& link) {
    Names result;
    for (const auto& parameter : link.collect_parameters()) result.push_back(parameter.name);
    return result;
}
Floats values(const Variable& x) { return x.data().to_vector<float>(); }
Variable input() { return Variable(Array::from({1.F, -2.F, 0.5F, 3.F}, {2, 2})); }
Variable twice(const Variable& x) { return x * 2; }

Sequential make() { return Sequential{Linear(2, 3), F::relu, Linear(3, 2), twice}; }

// Counts its calls, which are therefore not const.
struct Counting : Link {
    std::int64_t calls = 0;
    using Link::operator();
    Variable operator()(const Variable& x) override {
        ++calls;
        return x;
    }
    void visit(Visitor& v) override { v("calls", calls); }
};

}  // namespace

TEST_CASE("steps run in order; only links are numbered") {
    const Sequential model = make();
    auto& first = model.get<Linear>(0);
    auto& second = model.get<Linear>(2);
    CHECK(values(model(input())) == values(twice(second(F::relu(first(input()))))));
    CHECK(names(model) == Names{"0/W", "0/b", "1/W", "1/b"});
    CHECK(model.size() == 4);
    CHECK(values(model[-1](input())) == Floats{2, -4, 1, 6});
    CHECK(&model[-4] == &first);
    std::vector<const Link*> all;
    for (const Link& step : model) all.push_back(&step);
    CHECK(all == std::vector<const Link*>{&first, &model[1], &second, &model[3]});
    CHECK(values(Sequential()(input())) == values(input()));
    CHECK(names(Sequential{model, F::tanh, Linear(2, 2, 1, 0, true)}) ==
          Names{"0/0/W", "0/0/b", "0/1/W", "0/1/b", "1/W"});
}

TEST_CASE("wrong numbers and types") {
    const Sequential model = make();
    for (const std::int64_t i : {4, -5})
        contains(error_of<InvalidError>([&] { (void)model[i]; }),
                 "[ChainList] link: expected one of 4, got " + std::to_string(i));
    contains(error_of<InvalidError>([&] { (void)model.get<links::EmbedID>(2); }),
             "[ChainList] 2: expected EmbedID, got Linear");
    contains(error_of<ShapeError>([&] {
                 (void)Sequential{Linear(2, 3), Linear(2, 3)}(input());
             }),
             "[catena.linear]");
    CHECK_THROWS_AS((void)ChainList{Linear(2, 2)}(input()), UnsupportedError);
}

TEST_CASE("append, extend and repeat") {
    Sequential model;
    Link& first = model.append(Linear(2, 2));
    for (int i = 0; i < 20; ++i) model.append(F::tanh);
    CHECK(&model[0] == &first);
    CHECK(model.size() == 21);

    const Sequential block = make();
    Sequential shared = block;
    shared.extend(shared);
    CHECK(shared.size() == 8);
    CHECK(values(shared(input())) == values(block(block(input()))));
    CHECK(shared.parameters().size() == 4);  // both halves are the same links
    CHECK(shared.get<Linear>(4).W.node_ref() == block.get<Linear>(0).W.node_ref());

    const Sequential deep = block.repeat(3);
    CHECK(deep.size() == 3);
    CHECK(deep.parameters().size() == 12);
    CHECK(names(deep).back() == "2/1/b");
    CHECK(values(deep(input())) == values(block(block(block(input())))));
    deep.get<Sequential>(1).get<Linear>(0).W.data().fill(7);
    CHECK(block.get<Linear>(0).W.data().to_vector<float>()[0] != 7);
    CHECK(block.repeat(0).size() == 0);
}

TEST_CASE("copies share parameters, deep copies do not; steps may have state") {
    Sequential model{Counting(), Linear(2, 2)};
    const Sequential copy = model;
    const Sequential deep = deep_copy(model);
    (void)model(input());
    (void)std::as_const(model)(input());
    CHECK(model.get<Counting>(0).calls == 2);
    CHECK(copy.get<Counting>(0).calls == 0);
    CHECK(copy.get<Linear>(1).W.node_ref() == model.get<Linear>(1).W.node_ref());
    CHECK(deep.get<Linear>(1).W.node_ref() != model.get<Linear>(1).W.node_ref());
    CHECK(values(deep(input())) == values(copy(input())));
}

TEST_CASE("saved, loaded, moved and trained") {
    const TemporaryFolder folder;
    Sequential model = make();
    save_npz(folder.path / "a.npz", model);
    Sequential loaded = make();
    CHECK(values(loaded(input())) != values(model(input())));
    load_npz(folder.path / "a.npz", loaded);
    CHECK(values(loaded(input())) == values(model(input())));
    // The file has the names of a FunctionSet that numbers the links.
    FunctionSet set{{"0", Linear(2, 3)}, {"1", Linear(3, 2)}};
    load_npz(folder.path / "a.npz", set);
    CHECK(values(set["0"](input())) == values(model[0](input())));

    loaded.to(Device::get("cpu:1"));
    CHECK(loaded.get<Linear>(2).b.device() == Device::get("cpu:1"));
    optimizers::SGD sgd(0.01);
    sgd.setup(model);
    const auto loss = [&] {
        const Variable y = model(input());
        return F::sum(y * y);
    };
    const Variable before = loss();
    before.backward();
    sgd.update();
    CHECK(loss().item() < before.item());
}

TEST_CASE("a ChainList in a Chain") {
    struct Tower : Chain {
        ChainList layers{Linear(2, 2), links::PReLU()};
        Variable operator()(const Variable& x) const override {
            Variable h = x;
            for (Link& layer : layers) h = layer(h);
            return h;
        }
        void visit(Visitor& v) override { v("layers", layers); }
    } tower;
    tower.layers.append(Linear(2, 1));
    CHECK(names(tower) ==
          Names{"layers/0/W", "layers/0/b", "layers/1/W", "layers/2/W", "layers/2/b"});
    CHECK(tower(input()).shape() == Shape{2, 1});
}

TEST_CASE("MLP") {
    const links::MLP mlp({2, 5, 4, 3}, F::tanh);
    CHECK(names(mlp) == Names{"0/W", "0/b", "1/W", "1/b", "2/W", "2/b"});
    const Variable h = F::tanh(mlp[2](F::tanh(mlp[0](input()))));
    CHECK(values(mlp(input())) == values(mlp[4](h)));
    const links::MLP rectified({2, 5, 1});
    CHECK(values(rectified[1](input())) == values(F::relu(input())));
    CHECK(links::MLP({2, 3}).size() == 1);
    CHECK(links::MLP({2, 3})(input()).shape() == Shape{2, 3});

    const links::PReLU slope(Shape{}, 0.5);
    const links::MLP own({2, 3, 3, 1}, slope);  // each layer has slopes of its own
    CHECK(own.get<links::PReLU>(1).W.node_ref() != own.get<links::PReLU>(3).W.node_ref());
    CHECK(own.parameters().size() == 8);

    const links::MLP dropped({2, 400, 1}, F::relu, 0.5);
    const Variable ones(Array::ones({1, 400}));
    seed(1);
    const double kept = F::sum(dropped[2](ones)).item() / 2;
    CHECK(kept > 140);
    CHECK(kept < 260);
    const using_config test(&Config::train, false);
    CHECK(values(dropped[2](ones)) == values(ones));

    contains(error_of<ShapeError>([] { links::MLP({2}); }),
             "[MLP] sizes: expected at least 2, got 1");
    contains(error_of<InvalidError>([] {
                 links::MLP({2, 3}, F::relu, 1);
             }),
             "[MLP] dropout: expected 0 or more, below 1, got 1");
    CHECK_THROWS_AS(links::MLP({2, 0, 1}), ShapeError);
}
