// Tests of functions with arrays as parameters, whose backward() does gw += gy * x.
#include "nodes.hpp"

#include <catena/optimizers.hpp>
#include <catena/serializer.hpp>

namespace {

struct EltwiseParamProduct : Function<EltwiseParamProduct> {
    Array w, gw;
    explicit EltwiseParamProduct(const Shape& shape)
        : w(initializers::Normal(1)(shape)), gw(Array::zeros(shape)) {}
    explicit EltwiseParamProduct(Array values) : w(std::move(values)) {}
    std::vector<FunctionParameter> parameter_names() override { return {{"w", w, gw}}; }
    Arrays forward(ArraySpan inputs) override { return {w * inputs[0]}; }
    Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
        const Array &x = inputs[0], &gy = grad_outputs[0];
        gw += gy * x;
        return {gy * w};
    }
};
// The same without parameter_names(): w is not a parameter, but backward() adds to gw.
struct Unnamed : Function<Unnamed> {
    Array w = Array::from({2.0}, {1}), gw = Array::zeros({1}, Dtype::float64);
    Arrays forward(ArraySpan inputs) override { return {w * inputs[0]}; }
    Arrays backward(ArraySpan inputs, ArraySpan gy) override {
        gw += gy[0] * inputs[0];
        return {gy[0] * w};
    }
};
// The same with Parameters, as in a link.
struct Visited : Function<Visited> {
    Parameter w{Array::from({2.0}, {1})}, b{Array::from({1.0}, {1})};
    void visit(Visitor& visitor) override { visitor("w", w)("b", b)("again", w); }
    Arrays forward(ArraySpan inputs) override { return {w.data() * inputs[0] + b.data()}; }
    Arrays backward(ArraySpan inputs, ArraySpan gy) override {
        if (!w.grad()) w.zerograd();
        w.grad() += gy[0] * inputs[0];
        if (!b.grad()) b.zerograd();
        b.grad() += gy[0];
        return {gy[0] * w.data()};
    }
};
// Both kinds of parameters.
struct ListedAndVisited : Function<ListedAndVisited> {
    Array w = Array::from({2.0}, {1}), gw;
    Parameter b{Array::from({1.0}, {1})};
    std::vector<FunctionParameter> parameter_names() override { return {{"w", w, gw}}; }
    void visit(Visitor& visitor) override {
        visitor("b", b);
        ArrayFunction::visit(visitor);
    }
    Arrays forward(ArraySpan inputs) override { return {w * inputs[0] + b.data()}; }
    Arrays backward(ArraySpan inputs, ArraySpan gy) override {
        gw += gy[0] * inputs[0];
        if (!b.grad()) b.zerograd();
        b.grad() += gy[0];
        return {gy[0] * w};
    }
};

Array numbers(std::initializer_list<double> v) { return var(v).data(); }

}  // namespace

TEST_CASE("a gradient that backward adds to is the function's own") {
    Unnamed f;
    const Variable x = var({3});
    Variable loss = f(x) * 2;
    loss.backward();
    CHECK(values(f.gw) == Doubles{6});
    f(x).backward();
    CHECK(values(f.gw) == Doubles{9});
    CHECK(f.parameters().empty());
}

TEST_CASE("a gradient that was never made is an error, not lost") {
    Unnamed f;
    f.gw = Array();
    const Variable x = var({3});
    const Variable y = f(x);
    CHECK_THROWS_WITH_AS(y.backward(), doctest::Contains("[+=] x: expected an array, got an empty"),
                         InvalidError);
    CHECK_FALSE(f.gw);
    const Variable constant = f(as_variable(numbers({3})));  // nothing requires a gradient
    CHECK_THROWS_AS(constant.backward(), GraphError);
    CHECK_FALSE(f.gw);
    // For a named parameter, gw is created, even if x requires no gradient.
    EltwiseParamProduct named(numbers({2}));
    named(as_variable(numbers({3}))).backward();
    CHECK(values(named.gw) == Doubles{3});
}

TEST_CASE("a gradient of a parameter that visit() names, also where no x takes one") {
    Visited f;
    CHECK(f.collect_parameters().size() == 2);
    const Variable x = var({3}), data = as_variable(numbers({3}));
    f(data).backward();
    CHECK(values(f.w.grad()) == Doubles{3});
    CHECK(values(f.b.grad()) == Doubles{1});
    CHECK_FALSE(data.grad());
    f(x).backward();
    CHECK(values(x.grad()) == Doubles{2});
    CHECK(values(f.w.grad()) == Doubles{6});
    CHECK(values(f.b.grad()) == Doubles{2});
    f.zerograds();
    (f(data) * 2).backward();
    CHECK(values(f.w.grad()) == Doubles{6});
    f.cleargrads();
    f(data).backward();
    CHECK(values(f.w.grad()) == Doubles{3});
    // With gradients that have a graph.
    f(data).backward(/*retain_grad=*/false, /*enable_double_backprop=*/true);
    CHECK(values(f.w.grad()) == Doubles{6});
    // In a net with an optimizer.
    FunctionSet model{{"f", f}};
    optimizers::SGD optimizer(0.5);
    optimizer.setup(model);
    optimizer.update();
    CHECK(values(f.w.data()) == Doubles{2 - 3});
    const auto again = f(data);
    REQUIRE(again.creator());
    CHECK(values(again.creator()->forward(Arrays{numbers({1})})[0]) == Doubles{-1});  // b = 0
    // A parameter that is changed between a call and its backward().
    const Variable y = f(data);
    f.w.data() += 1;
    CHECK_THROWS_AS(y.backward(), GraphError);
    CHECK(f(Variable(numbers({1}), true)).is_volatile());
    const no_backprop_mode scope;
    CHECK_FALSE(f(data).creator());
}

TEST_CASE("parameters by name and by visit() in one function") {
    ListedAndVisited f;
    CHECK(f.collect_parameters().size() == 2);
    for (const Variable& x : {var({3}), as_variable(numbers({3}))}) {
        f.zerograds();
        f(x).backward();
        CHECK(values(f.gw) == Doubles{3});
        CHECK(values(f.b.grad()) == Doubles{1});
    }
}

TEST_CASE("a parameterized function as a program uses it alone") {
    EltwiseParamProduct f(numbers({2, -1}));
    CHECK_FALSE(f.gw);
    const Variable x = var({3, 4});
    const Variable y = f(x);
    REQUIRE(f.gw);
    f.gw.fill(0);
    y.set_grad(numbers({1, 10}));
    y.backward();
    CHECK(values(f.gw) == Doubles{3, 40});
    CHECK(values(x.grad()) == Doubles{2, -10});
    y.backward();
    CHECK(values(f.gw) == Doubles{6, 80});
    // forward() again, with the same parameters; it does not change the next backward().
    CHECK(values(y.creator()->forward(Arrays{numbers({1, 1})})[0]) == Doubles{2, -1});
    y.backward();
    CHECK(values(f.gw) == Doubles{9, 120});
    f.gw.fill(0);
    CHECK_THROWS_AS((void)y.creator()->forward(Arrays{}), InvalidError);
    f.gw = numbers({6, 80});
    const Variable of_data = f(as_variable(numbers({1, 1})));  // inputs without a gradient
    of_data.set_grad(numbers({1, 1}));
    of_data.backward();
    CHECK(values(f.gw) == Doubles{7, 81});

    // Gradients with a graph, then without.
    f.gw.fill(0);
    const Array gw = f.gw;
    F::sum(f(x)).backward(/*retain_grad=*/false, /*enable_double_backprop=*/true);
    CHECK(values(f.gw) == Doubles{3, 4});
    CHECK(values(f.parameters()[0].grad_variable().data()) == Doubles{3, 4});
    F::sum(f(x)).backward();
    CHECK(values(gw) == Doubles{6, 8});
    CHECK(values(f.parameters()[0].grad_variable().data()) == Doubles{6, 8});
    CHECK(f.gw.body() == gw.body());

    const Variable data(numbers({1, 1}), true);
    CHECK(f(data).is_volatile());
    const no_backprop_mode scope;
    CHECK_FALSE(f(x).creator());
}

TEST_CASE("its parameters are a link's: listed, cleared, learned, named in a set") {
    FunctionSet model{{"scale", EltwiseParamProduct(numbers({2, -1}))},
                      {"l1", links::Linear(2, 1)}};
    auto& f = model.get<EltwiseParamProduct>("scale");
    CHECK(model.collect_parameters()[2].name == "scale/w");
    CHECK(f.count_parameters() == 2);
    CHECK(f.parameters()[0].data().body() == f.w.body());
    optimizers::MomentumSGD optimizer(0.5);
    optimizer.setup(model.collect_parameters());
    const auto step = [&] {
        F::sum(model["scale"](as_variable(numbers({3, 4})))).backward();
        optimizer.update();
    };
    optimizer.zero_grads();
    step();
    CHECK(values(f.gw) == Doubles{3, 4});
    CHECK(values(f.w) == Doubles{2 - 1.5, -1 - 2});
    optimizer.zero_grads();
    CHECK(values(f.gw) == Doubles{0, 0});  // cleared in place
    step();
    optimizer.cleargrads();
    CHECK(values(f.gw) == Doubles{0, 0});
    step();
    CHECK(values(f.gw) == Doubles{3, 4});
    optimizer.clip_grads(2.5);
    CHECK(values(f.gw)[0] == doctest::Approx(1.5));
    const Arrays more = {Array(), Array(), numbers({1, 1})};
    optimizer.accumulate_grads(more);
    CHECK(values(f.gw)[1] == doctest::Approx(3));
    CHECK(f.gw.body() == f.parameters()[0].grad().body());
}

TEST_CASE("copies share the parameters, deep copies do not") {
    EltwiseParamProduct f(numbers({2}));
    EltwiseParamProduct same = f;
    EltwiseParamProduct assigned(numbers({0}));
    assigned = f;
    EltwiseParamProduct other = deep_copy(f);
    const FunctionSet twice{{"a", f}, {"b", same}, {"c", assigned}, {"d", other}};
    CHECK(twice.parameters().size() == 2);
    F::sum(same(var({5})) + assigned(var({1}))).backward();
    CHECK(values(f.gw) == Doubles{6});
    CHECK(values(other.gw) == Doubles{0});
    other.w.fill(1);
    CHECK(values(f.w) == Doubles{2});

    // Assigning a member changes the values of all copies.
    f.w = numbers({7});
    CHECK(values(f(var({1})).data()) == Doubles{7});
    CHECK(values(same(var({1})).data()) == Doubles{7});
    f.gw = numbers({3});
    CHECK(values(f.parameters()[0].grad()) == Doubles{3});
    CHECK(values(same.gw) == Doubles{3});
}

TEST_CASE("it moves, converts, saves and loads as a link") {
    EltwiseParamProduct f({3});
    const Array start = f.w.copy();
    optimizers::Adam optimizer;
    optimizer.setup(f);
    const Device second = Device::get("cpu:1");
    f.to(second);
    CHECK(f.w.device() == second);
    CHECK(f.gw.device() == second);
    F::sum(f(as_variable(Array::ones({3}, Dtype::float32, second)))).backward();
    CHECK(values(f.gw) == Doubles{1, 1, 1});
    optimizer.update();
    CHECK(values(f.w) != values(start));
    f.to_cpu();
    CHECK(f.w.device() == Device::get("cpu:0"));
    f.to(Dtype::float64);
    CHECK(f(var({1, 1, 1})).dtype() == Dtype::float64);
    {
        const Variable y = f(var({1, 1, 1}));
        CHECK_THROWS_AS(f.to(second), GraphError);  // a graph retains the array
    }
    const TemporaryFolder folder;
    save_npz(folder.path / "f.npz", f);
    EltwiseParamProduct loaded(Array::zeros({3}, Dtype::float64));
    const Array w = loaded.w;
    load_npz(folder.path / "f.npz", loaded);
    CHECK(values(w) == values(f.w));
}

TEST_CASE("its gradients are checked, by arrays and by variables") {
    EltwiseParamProduct f({3, 2});
    const auto call = [&](const Variables& v) -> Variables { return {f(v[0])}; };
    const gradient_check::Options options{.params = f.parameters(), .dtype = Dtype::float64};
    const Array x = draw({3, 2}).astype(Dtype::float32);
    gradient_check::check_backward(call, Arrays{x}, Arrays{x}, options);
    CHECK(f.parameters()[0].dtype() == Dtype::float32);
    CHECK(f.w.dtype() == Dtype::float32);
    const Variable p = f.parameters()[0];
    const Variables g = grad({F::sum(f(as_variable(x)))}, {p});
    CHECK(g[0].shape() == Shape{3, 2});
}

TEST_CASE("what a parameterized function must not do") {
    EltwiseParamProduct f(numbers({2}));
    const Variable y = f(var({3}));
    f.w += 1;
    CHECK_THROWS_AS(y.backward(), GraphError);
    CHECK_THROWS_WITH_AS(
        (void)EltwiseParamProduct(Array()).parameters(),
        "[EltwiseParamProduct] parameter_names: w: expected an array, got an empty "
        "handle",
        InvalidError);
    CHECK_THROWS_AS((void)EltwiseParamProduct(Array::zeros({2}, Dtype::int64)).parameters(),
                    DtypeError);
    f.gw = numbers({1, 2});
    CHECK_THROWS_AS((void)f.parameters(), ShapeError);

    struct Doubling : Function<Doubling> {
        Arrays forward(ArraySpan inputs) override { return {inputs[0] + 0}; }
        Arrays backward(ArraySpan, ArraySpan grad_outputs) override {
            Array gx = grad_outputs[0];
            gx *= 2;
            return {gx};
        }
    };
    const Variable x = var({1});
    CHECK_THROWS_WITH_AS(
        Doubling()(x).backward(),
        doctest::Contains("[Doubling] backward: expected grad_outputs[0] to be unmodified"),
        InvalidError);

    struct Squaring : Function<Squaring> {
        Arrays forward(ArraySpan inputs) override {
            Array y = inputs[0];
            y *= inputs[0];
            return {y};
        }
    };
    CHECK_THROWS_WITH_AS(
        Squaring()(x), doctest::Contains("[Squaring] forward: expected inputs[0] to be unmodified"),
        InvalidError);

    struct Square : FunctionNode {
        Arrays forward(ArraySpan inputs) override {
            retain_inputs({0});
            return {inputs[0] * inputs[0]};
        }
        Variables backward(Targets, VariableSpan grad_outputs) override {
            const auto [x] = unpack<1>(get_retained_inputs());
            x.data() *= 2;
            return {grad_outputs[0] * x};
        }
    };
    const Variable y1 = apply<Square>({x})[0];
    CHECK_THROWS_WITH_AS(y1.backward(), doctest::Contains("[Square] backward: expected "),
                         InvalidError);
}
