// Tests of links and sets: names, sharing, copies, moves.
#include <catena/core/error.hpp>
#include <catena/function_set.hpp>
#include <catena/functions.hpp>
#include <catena/initializers.hpp>
#include <catena/links.hpp>
#include <catena/lists.hpp>
#include <catena/operators.hpp>

#include "temporary.hpp"

#include <cmath>
#include <type_traits>

using namespace catena;
namespace F = catena::functions;

namespace {

template <class X, class Y>
concept Assigns = std::is_assignable_v<X&, Y>;
template <class X, class Y>
concept Adds = requires(X& x, const Y& y) {
    x += y;
};

struct Net : Chain {
    links::Linear l1{3, 4}, l2{4, 2, 1, 0, true};
    Array mean = Array::zeros({2});
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("mean", mean); }
};

std::vector<std::string> names(const Link& link) {
    std::vector<std::string> result;
    for (const auto& parameter : link.collect_parameters()) result.push_back(parameter.name);
    return result;
}

}  // namespace

TEST_CASE("Linear starts as Chainer's") {
    seed(1);
    const links::Linear linear(400, 300, 2, 0.5);
    CHECK(linear.W.shape() == Shape{300, 400});
    double sum = 0;
    for (const float w : linear.W.data().to_vector<float>()) sum += w * w;
    CHECK(std::sqrt(sum / 120000) == doctest::Approx(2 * std::sqrt(1 / 400.)).epsilon(0.02));
    CHECK(linear.b.data().to_vector<float>() == std::vector<float>(300, 0.5F));
    CHECK_FALSE(links::Linear(2, 3, 1, 0, true).b);
    CHECK_THROWS_AS(links::Linear(0, 3), ShapeError);
}

TEST_CASE("a Parameter is a variable that a link learns") {
    struct Scale : Link {
        Parameter W{initializers::Constant(3), {2}};
        Parameter b{0, {2}};
        void visit(Visitor& v) override { v("W", W)("b", b); }
        Variable operator()(const Variable& x) override { return W * x + b; }
    } scale;
    CHECK(names(scale) == std::vector<std::string>{"W", "b"});
    CHECK(scale.W.data().to_vector<float>() == std::vector<float>{3, 3});
    const Variable x(Array::ones({2}), true);
    CHECK(scale(x).is_volatile());
    F::sum(scale(as_variable(x.data()))).backward();
    CHECK(scale.W.grad().to_vector<float>() == std::vector<float>{1, 1});
    Scale copy = deep_copy(scale);
    CHECK(copy(x).is_volatile());

    // A Parameter is used with arrays and numbers as any variable, but cannot be replaced by one.
    CHECK((scale.W * x.data() - 1).data().to_vector<float>() == std::vector<float>{2, 2});
    CHECK((x.data() / scale.W > 0.5).data().to_vector<float>() == std::vector<float>{0, 0});
    Variable sum;
    sum += scale.W;
    CHECK(&sum.node() == &scale.W.node());
    CHECK_FALSE(Assigns<Parameter, Variable>);
    CHECK_FALSE(Adds<Parameter, Variable>);
    CHECK(Assigns<Parameter, Parameter>);
    CHECK(Assigns<Variable, Parameter>);
    CHECK_FALSE(std::is_constructible_v<Parameter, Variable>);

    CHECK_THROWS_WITH_AS(Parameter(Array::zeros({2}, Dtype::int64)),
                         "[Parameter] data: expected a floating array, got int64", DtypeError);
    CHECK_THROWS_WITH_AS(Parameter(Array{}),
                         "[Parameter] data: expected a floating array, got none", DtypeError);
    CHECK_THROWS_AS(links::Parameter(Array::zeros({2}, Dtype::int64)), DtypeError);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("a plain variable as a parameter is marked by the first visit, or refused") {
    struct Old : Link {
        explicit Old(Variable w) : W(std::move(w)) {}
        Variable W;
        void visit(Visitor& v) override { v("W", W); }
        Variable operator()(const Variable& x) override { return W * x; }
    };
    const Variable x(Array::ones({2}), true);
    Old plain{Variable(Array::ones({2}))};
    CHECK_THROWS_AS(plain(x), GraphError);
    CHECK(names(plain) == std::vector<std::string>{"W"});
    CHECK(plain(x).is_volatile());
    Old older{as_parameter(Array::ones({2}))};
    CHECK(older(x).is_volatile());
    older.W.set_requires_grad(false);  // frozen for now
    CHECK(names(older).size() == 1);

    struct Net : Link {
        explicit Net(const Variable& w) : part(w) {}
        Old part;
        void visit(Visitor& v) override { v("part", part); }
    };
    CHECK_THROWS_WITH_AS(
        (void)Net(as_variable(Array::ones({2}))).parameters(),
        "[visit] part/W: expected a Parameter, got a variable that takes no gradient",
        InvalidError);
    CHECK_THROWS_WITH_AS((void)Net(Variable(Array::ones({2})) * 2).parameters(),
                         "[visit] part/W: expected a Parameter, got a variable that a call made",
                         InvalidError);
    // each_once(), which optimizers call, also marks variables as parameters.
    const Variable leaf(Array::ones({2}));
    CHECK(each_once({{"p", leaf}}).size() == 1);
    CHECK((leaf * x).is_volatile());
    CHECK_THROWS_WITH_AS(
        (void)each_once({{"p", as_variable(Array::ones({2}))}}),
        "[parameters] p: expected a Parameter, got a variable that takes no gradient",
        InvalidError);
}
#pragma GCC diagnostic pop

TEST_CASE("parameters are listed by path in the order of visit()") {
    const Net net;
    CHECK(names(net) == std::vector<std::string>{"l1/W", "l1/b", "l2/W"});
    CHECK(net.count_parameters() == 12 + 4 + 8);
    CHECK(net.gradients().size() == 3);
    CHECK_FALSE(net.gradients()[0]);
    net.zerograds();
    CHECK(net.gradients()[1].to_vector<float>() == std::vector<float>(4, 0));
    net.cleargrads();
    CHECK_FALSE(net.gradients()[1]);
}

TEST_CASE("a copy shares the parameters, a deep copy does not") {
    Net net;
    const Net shared = net;
    Net own = deep_copy(net);
    net.l1.W.data().fill(7);
    net.mean.fill(3);
    CHECK(shared.l1.W.data().to_vector<float>()[0] == 7);
    CHECK(own.l1.W.data().to_vector<float>()[0] != 7);
    CHECK(own.mean.to_vector<float>()[0] == 0);
    own.copy_parameters_from(net);
    CHECK(own.l1.W.data().to_vector<float>() == net.l1.W.data().to_vector<float>());
    CHECK(own.mean.to_vector<float>()[0] == 0);
}

TEST_CASE("copy_parameters_from checks all before it writes") {
    const Net net;
    const Net other;
    auto parameters = other.parameters();
    const auto before = net.l1.W.data().to_vector<float>();
    parameters[2] = Variable(Array::zeros({2, 5}));
    const auto text = error_of<ShapeError>([&] { net.copy_parameters_from(parameters); });
    contains(text, "l2/W: expected (2, 4) float32, got (2, 5) float32");
    CHECK(net.l1.W.data().to_vector<float>() == before);
    parameters.pop_back();
    CHECK_THROWS_AS(net.copy_parameters_from(parameters), ShapeError);
}

TEST_CASE("copy_parameters_from takes arrays, in the order of parameters()") {
    const Net net;
    Arrays arrays;
    for (const Variable& parameter : net.parameters())
        arrays.push_back(Array::full(parameter.shape(), static_cast<double>(arrays.size() + 1)));
    const auto W = net.l1.W.data().body();
    net.copy_parameters_from(arrays);
    CHECK(net.l1.W.data().body() == W);  // copied in place
    CHECK(net.l1.W.data().to_vector<float>()[0] == 1);
    CHECK(net.l1.b.data().to_vector<float>()[0] == 2);
    CHECK(net.l2.W.data().to_vector<float>()[0] == 3);
    arrays[0].fill(7);
    arrays[2] = Array::zeros({1});
    CHECK_THROWS_AS(net.copy_parameters_from(arrays), ShapeError);
    arrays[2] = Array();
    CHECK_THROWS_AS(net.copy_parameters_from(arrays), InvalidError);
    arrays.pop_back();
    CHECK_THROWS_AS(net.copy_parameters_from(arrays), ShapeError);
    CHECK(net.l1.W.data().to_vector<float>()[0] == 1);
}

namespace {

struct Squares : Chain {  // operator() is const
    links::Linear l{2, 3};
    void visit(Visitor& v) override { v("l", l); }
    Variable operator()(const Variable& x) const override { return l(x * x); }
};
struct Counted : Chain {  // operator() is not const, as in older links
    int calls = 0;
    void visit(Visitor&) override {}
    Variable operator()(const Variable& x) override {
        ++calls;
        return x;
    }
};

}  // namespace

TEST_CASE("const links are called, by themselves and by reference") {
    const Variable x(Array::ones({1, 2}));
    const Squares link;
    CHECK(link(x).shape() == Shape{1, 3});
    const Link& any = link;
    CHECK(any(x).data().to_vector<float>() == link(x).data().to_vector<float>());
    Squares mutable_link;
    Link& other = mutable_link;  // calls the non-const operator()
    CHECK(other(x).data().to_vector<float>() == mutable_link(x).data().to_vector<float>());

    const links::EmbedID embed(3, 4);
    CHECK(embed(Variable(Array::zeros({2}, Dtype::int32))).shape() == Shape{2, 4});
    const links::PReLU prelu;
    CHECK(prelu(x).shape() == x.shape());
    const links::Convolution2D convolution(1, 2, 1);
    CHECK(convolution(Variable(Array::ones({1, 1, 2, 2}))).shape() == Shape{1, 2, 2, 2});
    const links::Inception inception(1, 1, 1, 1, 1, 1, 1);
    CHECK(inception(Variable(Array::ones({1, 1, 4, 4}))).shape() == Shape{1, 4, 4, 4});
    const links::BatchNormalization normalize(2);
    CHECK(normalize(Variable(Array::from({1.F, 2.F, 3.F, 4.F}, {2, 2}))).shape() == Shape{2, 2});
    CHECK(normalize.avg_mean.to_vector<float>()[0] == doctest::Approx(0.2));  // as in training
    CHECK(normalize(x, /*test=*/true).shape() == Shape{1, 2});

    Counted counted;
    Link& reference = counted;
    (void)reference(x);
    (void)counted(x);
    CHECK(counted.calls == 2);
    const Link& unchanging = counted;
    contains(error_of<UnsupportedError>([&] { (void)unchanging(x); }),
             "got Counted, which is called in its own way, or not by an operator() that is const");
}

TEST_CASE("to() moves what there is and keeps the variables") {
    Net net;
    const Variable w = net.l1.W;
    w.zerograd();
    const Device second = Device::get(std::string(Device::current().backend()) + ":1");
    net.to(second);
    CHECK(w.device() == second);
    CHECK(w.grad().device() == second);
    CHECK(net.mean.device() == second);
    Net back;
    back.copy_parameters_from(net);
    CHECK(back.l1.W.data().to_vector<float>() == w.data().to_vector<float>());
    back.l1.W.set_grad(Array::ones({4, 3}));
    net.add_gradients(back);
    net.add_gradients(back);
    CHECK(w.grad().to_vector<float>() == std::vector<float>(12, 2));
    CHECK(back.l1.W.grad().to_vector<float>() == std::vector<float>(12, 1));
}

TEST_CASE("a set is ordered by name, nests, and has value semantics of links") {
    FunctionSet set{{"l10", links::Linear(2, 2)}, {"l2", links::Linear(2, 2)}};
    set.add("l1", links::Linear(2, 2, 1, 0, true));
    FunctionSet outer;
    outer.add("b", set);
    outer.add("a", links::Linear(2, 2, 1, 0, true));
    CHECK(names(outer) ==
          std::vector<std::string>{"a/W", "b/l1/W", "b/l10/W", "b/l10/b", "b/l2/W", "b/l2/b"});
    CHECK(&outer["b/l2"] == &outer.get<FunctionSet>("b")["l2"]);
    CHECK(set.get<links::Linear>("l2").W.shape() == Shape{2, 2});

    outer.get<links::Linear>("b/l2").W.data().fill(5);
    CHECK(set.get<links::Linear>("l2").W.data().to_vector<float>()[3] == 5);
    FunctionSet own = deep_copy(outer);
    outer.get<links::Linear>("b/l2").W.data().fill(6);
    CHECK(own.get<links::Linear>("b/l2").W.data().to_vector<float>()[3] == 5);
    const FunctionSet assigned = own;
    CHECK(assigned.get<links::Linear>("b/l2").W.data().to_vector<float>()[3] == 5);

    contains(error_of<InvalidError>([&] { set["l3"]; }), "expected one of l1, l10, l2, got 'l3'");
    CHECK_THROWS_AS(set.add("l1", links::Linear(2, 2)), InvalidError);
    CHECK_THROWS_AS(set.add("x/y", links::Linear(2, 2)), InvalidError);
    CHECK_THROWS_AS(set.get<FunctionSet>("l1"), InvalidError);
    CHECK_THROWS_AS(outer["a/W"], InvalidError);
    CHECK_THROWS_AS(outer["b"](Variable(Array::zeros({1}))), UnsupportedError);
}

TEST_CASE("errors name the link's class, the kind that is expected, and agree with contains()") {
    FunctionSet set{{"in", FunctionSet{{"l", links::Linear(2, 2)}}},
                    {"p", links::Parameter(Array::zeros({1}))}};
    const Variable x(Array::zeros({1, 2}));
    contains(error_of<UnsupportedError>([&] { (void)set(x); }), "[FunctionSet] call: expected");
    contains(error_of<UnsupportedError>([&] { (void)set["p"](x); }),
             "[Parameter] call: expected a link that takes one variable, got Parameter");
    contains(error_of<InvalidError>([&] { (void)set.get<links::PReLU>("in/l"); }),
             "[FunctionSet] in/l: expected PReLU, got Linear");
    contains(error_of<InvalidError>([&] { (void)set["p/x"]; }),
             "[FunctionSet] p: expected FunctionSet, got Parameter");
    contains(error_of<InvalidError>([&] { (void)FunctionSet()["x"]; }),
             "expected the name of a link, of which there are none, got 'x'");
    for (const char* there : {"in", "in/l", "p"}) {
        CHECK(set.contains(there));
        CHECK_NOTHROW((void)set[there]);
    }
    for (const char* none : {"", "/", "in/", "in/l/", "in/l/W", "p/x", "l", "/in", "in//l"}) {
        CAPTURE(none);
        CHECK_FALSE(set.contains(none));
        CHECK_THROWS_AS((void)set[none], InvalidError);
    }
}

TEST_CASE("links of a set are called by name") {
    FunctionSet set{{"l", links::Linear(2, 1)}};
    auto& linear = set.get<links::Linear>("l");
    linear.W.set_data(Array::from({2.F, 3.F}, {1, 2}));
    linear.b.set_data(Array::from({1.F}, {1}));
    const Variable x(Array::from({1.F, 10.F, 100.F, 1000.F}, {2, 2}));
    CHECK(set["l"](x).data().to_vector<float>() == std::vector<float>{33, 3201});
}
