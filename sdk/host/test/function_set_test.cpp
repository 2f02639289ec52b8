// Tests of FunctionSet: nested sets, copies, moves; persistent values of links.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

using Floats = std::vector<float>;
using Linear = links::Linear;

FunctionSet make_inner() { return {{"l1", Linear(2, 3)}, {"l2", Linear(3, 2, 1, 0, true)}}; }
FunctionSet make() { return {{"a", Linear(2, 2)}, {"in", make_inner()}}; }

Variable call(const FunctionSet& set, const Variable& x) {
    return set["in/l2"](F::tanh(set["in/l1"](set["a"](x))));
}
Floats values(const Link& link) {
    Floats all;
    for (const Variable& p : link.parameters()) {
        for (const float v : p.data().to_vector<float>()) all.push_back(v);
    }
    return all;
}
std::vector<std::string> names(const Link& link) {
    std::vector<std::string> result;
    for (const auto& parameter : link.collect_parameters()) result.push_back(parameter.name);
    return result;
}
Variable input(Device device = {}) {
    return Variable(Array::from({1.F, -2.F, 0.5F, 3.F}, {2, 2}, device));
}

// Counting has persistent values that are not learned. Tied uses one parameter twice.
struct Counting : Link {
    Linear l{2, 2};
    Array mean = Array::zeros({2});
    Array ids = Array::from<std::int64_t>({1, 2}, {2});
    std::int64_t seen = 0;
    double rate = 0.5;
    void visit(Visitor& v) override {
        v("l", l)("mean", mean)("ids", ids)("seen", seen)("rate", rate);
    }
};
struct Tied : Link {
    Parameter first{Array::ones({2})};
    Parameter second = first;
    Array mean = Array::zeros({2});
    Array same = mean;
    void visit(Visitor& v) override {
        v("first", first)("second", second)("mean", mean)("same", same);
    }
};

}  // namespace

TEST_CASE("gradients of nested sets, in the order of the parameters") {
    const FunctionSet set = make();
    CHECK(names(set) == std::vector<std::string>{"a/W", "a/b", "in/l1/W", "in/l1/b", "in/l2/W"});
    CHECK(set.size() == 2);
    CHECK(set.contains("in"));
    CHECK(set.contains("in/l1"));
    F::sum(call(set, input())).backward();
    const auto parameters = set.parameters();
    const auto gradients = set.gradients();
    REQUIRE(gradients.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(gradients[i].body() == parameters[i].grad().body());
        CHECK(gradients[i].shape() == parameters[i].shape());
    }
    CHECK(parameters[2].node_ref() == set.get<Linear>("in/l1").W.node_ref());
    set["in"].cleargrads();
    CHECK(set.gradients()[0]);
    CHECK_FALSE(set.gradients()[4]);
}

TEST_CASE("copy_parameters_from, also across devices") {
    seed(1);
    const FunctionSet target = make();
    FunctionSet source = make();
    CHECK(values(source) != values(target));
    const Variable w = target.get<Linear>("in/l1").W;
    const Array array = w.data();
    w.set_grad(Array::ones({3, 2}));
    target.copy_parameters_from(source);
    CHECK(values(target) == values(source));
    CHECK(w.data().body() == array.body());  // copied in place
    CHECK(w.grad().to_vector<float>() == Floats(6, 1));
    source.get<Linear>("in/l1").W.data().fill(3);
    CHECK(values(target) != values(source));

    const Device second = Device::get("cpu:1");
    source.to(second);
    target.copy_parameters_from(source);
    CHECK(values(target) == values(source));
    CHECK(w.device() == Device::get("cpu:0"));
    target.get<Linear>("a").b.data().fill(7);
    source.copy_parameters_from(target.parameters());
    CHECK(values(target) == values(source));
    CHECK(source.get<Linear>("a").b.device() == second);
    target.copy_parameters_from(target);
    CHECK(values(target) == values(source));
}

TEST_CASE("sets that do not match are an error that loses nothing") {
    const FunctionSet set = make();
    const Floats before = values(set);
    FunctionSet fewer{{"a", Linear(2, 2)}};
    contains(error_of<ShapeError>([&] { set.copy_parameters_from(fewer); }),
             "[copy_parameters_from] parameters: expected 5, got 2");
    FunctionSet other = make();
    other.get<Linear>("in/l2").W.set_data(Array::zeros({2, 4}));  // the last parameter
    contains(error_of<ShapeError>([&] { set.copy_parameters_from(other); }),
             "[copy_parameters_from] in/l2/W: expected (2, 3) float32, got (2, 4) float32");
    FunctionSet wide = make();
    wide.get<Linear>("in/l2").W.set_data(Array::zeros({2, 3}, Dtype::float64));
    contains(error_of<ShapeError>([&] { set.copy_parameters_from(wide); }),
             "in/l2/W: expected (2, 3) float32, got (2, 3) float64");
    auto parameters = make().parameters();
    parameters[4] = Variable();
    CHECK_THROWS_AS(set.copy_parameters_from(parameters), InvalidError);
    CHECK(values(set) == before);
    // add() with an invalid name changes nothing either.
    FunctionSet mine = make();
    const Variable w = mine.get<Linear>("a").W;
    CHECK_THROWS_AS(mine.add("a", Linear(5, 5)), InvalidError);
    CHECK(mine.get<Linear>("a").W.node_ref() == w.node_ref());
    CHECK_THROWS_AS(mine.add("", Linear(5, 5)), InvalidError);
    CHECK(mine.size() == 2);
}

TEST_CASE("a deep copy computes the same and shares nothing") {
    FunctionSet set = make();
    F::sum(call(set, input())).backward();
    FunctionSet copy = deep_copy(set);
    CHECK(names(copy) == names(set));
    CHECK(values(copy) == values(set));
    for (const Array& gradient : copy.gradients()) CHECK_FALSE(gradient);
    const Variable y = call(copy, input());
    CHECK(y.data().to_vector<float>() == call(set, input()).data().to_vector<float>());
    const auto gradient = set.gradients()[0].to_vector<float>();
    F::sum(y).backward();
    CHECK(copy.gradients()[0].to_vector<float>() == gradient);
    CHECK(set.gradients()[0].to_vector<float>() == gradient);  // the original's is unchanged
    const Floats before = values(set);
    optimizers::SGD sgd(1);
    sgd.setup(copy);
    sgd.update();
    CHECK(values(set) == before);
    CHECK(values(copy) != before);
    copy.add("new", Linear(1, 1));
    CHECK_FALSE(set.contains("new"));
    copy.get<FunctionSet>("in").add("new", Linear(1, 1));
    CHECK_FALSE(set.get<FunctionSet>("in").contains("new"));
    // A copy accepts volatile variables, as the original does.
    CHECK(call(copy, Variable(input().data(), true)).is_volatile());
}

TEST_CASE("what is one in a link is one in its deep copy") {
    Tied tied;
    Tied copy = deep_copy(tied);
    CHECK(copy.first.node_ref() != tied.first.node_ref());
    CHECK(copy.first.node_ref() == copy.second.node_ref());
    CHECK(copy.mean.body() != tied.mean.body());
    CHECK(copy.mean.body() == copy.same.body());
    tied.to(Device::get("cpu:1"));
    CHECK(tied.first.node_ref() == tied.second.node_ref());
    CHECK(tied.mean.body() == tied.same.body());
    CHECK(tied.second.device() == Device::get("cpu:1"));
    const Linear shared(2, 2);
    const FunctionSet set{{"x", shared}, {"y", shared}};
    const FunctionSet twin = deep_copy(set);
    CHECK(twin.get<Linear>("x").W.node_ref() == twin.get<Linear>("y").W.node_ref());
}

TEST_CASE("to() moves nested sets with gradients; they compute there") {
    FunctionSet set = make();
    const auto here = call(set, input()).data().to_vector<float>();
    F::sum(call(set, input())).backward();
    const auto gradients = set.gradients();
    const Device second = Device::get("cpu:1");
    set.to(second);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const Variable p = set.parameters()[i];
        CHECK(p.device() == second);
        CHECK(p.grad().device() == second);
        CHECK(p.grad().to_vector<float>() == gradients[i].to_vector<float>());
    }
    const Array there = call(set, input(second)).data();
    CHECK(there.device() == second);
    CHECK(there.to_vector<float>() == here);
    CHECK_THROWS_AS(call(set, input()), DeviceError);
    set.to(Device::get("cpu:0"));
    CHECK(call(set, input()).data().to_vector<float>() == here);
}

TEST_CASE("to() while a graph refers to the parameters is an error that loses nothing") {
    FunctionSet set = make();
    set.zerograds();
    const Variable y = call(set, input());
    CHECK_THROWS_AS(set.to(Device::get("cpu:1")), GraphError);
    for (const Variable& p : set.parameters()) {
        CHECK(p.device() == Device::get("cpu:0"));
        CHECK(p.grad());
    }
    F::sum(y).backward();
}

TEST_CASE("persistent values are saved, loaded, copied and moved") {
    const TemporaryFolder folder;
    FunctionSet set{{"c", Counting()}, {"l", Linear(2, 2)}};
    auto& counting = set.get<Counting>("c");
    counting.mean.fill(0.25);
    counting.ids.fill(-7);
    counting.seen = 42;
    counting.rate = 1e-3;
    save_npz(folder.path / "a.npz", set);

    FunctionSet loaded{{"c", Counting()}, {"l", Linear(2, 2)}};
    auto& into = loaded.get<Counting>("c");
    const Array mean = into.mean;
    load_npz(folder.path / "a.npz", loaded);
    CHECK(values(loaded) == values(set));
    CHECK(mean.to_vector<float>() == Floats{0.25F, 0.25F});  // loaded in place
    CHECK(into.ids.to_vector<std::int64_t>() == std::vector<std::int64_t>{-7, -7});
    CHECK(into.seen == 42);
    CHECK(into.rate == 1e-3);
    CHECK(names(loaded) == std::vector<std::string>{"c/l/W", "c/l/b", "l/W", "l/b"});

    FunctionSet copy = deep_copy(loaded);
    into.mean.fill(9);
    into.seen = 0;
    auto& copied = copy.get<Counting>("c");
    CHECK(copied.mean.to_vector<float>() == Floats{0.25F, 0.25F});
    CHECK(copied.seen == 42);
    copy.copy_parameters_from(loaded);  // parameters only
    CHECK(copied.mean.to_vector<float>() == Floats{0.25F, 0.25F});
    copy.to(Device::get("cpu:1"));
    CHECK(copied.ids.device() == Device::get("cpu:1"));
    load_npz(folder.path / "a.npz", copy);
    CHECK(copied.ids.device() == Device::get("cpu:1"));
    CHECK(copied.mean.to_vector<float>() == Floats{0.25F, 0.25F});

    // A file with another shape, or with missing arrays, is an error, and nothing changes.
    FunctionSet other{{"c", Counting()}, {"l", Linear(2, 2)}};
    auto& odd = other.get<Counting>("c");
    odd.mean = Array::zeros({3});
    const Floats before = values(other);
    contains(error_of<DataError>([&] { load_npz(folder.path / "a.npz", other); }),
             "c/mean: expected float32 (3,), got float32 (2,)");
    CHECK(values(other) == before);
    CHECK(odd.seen == 0);
    FunctionSet more = deep_copy(set);
    more.add("m", Linear(1, 1));
    contains(error_of<DataError>([&] { load_npz(folder.path / "a.npz", more); }), "m/W: missing");
}
