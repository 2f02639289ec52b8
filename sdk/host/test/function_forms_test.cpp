// Tests of Chainer's forms of calls: by device, by name, of a creator, of lists and of numbers.
#include <catena/cuda.hpp>

#include "nodes.hpp"

namespace {

// x * y. Appends the names of the methods that run to `ran`.
std::string ran;
struct Product : FunctionNode {
    Arrays forward_cpu(ArraySpan inputs) override { return go("forward_cpu ", inputs); }
    Arrays forward_gpu(ArraySpan inputs) override { return go("forward_gpu ", inputs); }
    Variables backward(Targets, VariableSpan gy) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        return {y * gy[0], x * gy[0]};
    }
    Arrays go(const char* method, ArraySpan inputs) {
        ran += method;
        retain_inputs({0, 1});
        return {inputs[0] * inputs[1]};
    }
};
struct OldProduct : Function<OldProduct> {
    Arrays forward_cpu(ArraySpan x) override { return go("forward_cpu ", {x[0] * x[1]}); }
    Arrays forward_gpu(ArraySpan x) override { return go("forward_gpu ", {x[0] * x[1]}); }
    Arrays backward_cpu(ArraySpan x, ArraySpan gy) override {
        return go("backward_cpu ", {x[1] * gy[0], x[0] * gy[0]});
    }
    Arrays backward_gpu(ArraySpan x, ArraySpan gy) override {
        return go("backward_gpu ", {x[1] * gy[0], x[0] * gy[0]});
    }
    static Arrays go(const char* method, Arrays results) {
        ran += method;
        return results;
    }
};

// While it exists, the logical CPU devices after the first are GPUs.
struct CpusAsGpus {
    CpusAsGpus() { cuda::set_backend("cpu"); }
    CpusAsGpus(const CpusAsGpus&) = delete;
    CpusAsGpus& operator=(const CpusAsGpus&) = delete;
    ~CpusAsGpus() { cuda::set_backend(""); }
};

struct SumAndProduct : FunctionNode {
    static constexpr std::size_t n_outputs = 2;
    Arrays forward(ArraySpan x) override {
        retain_inputs({0, 1});
        return {x[0] + x[1], x[0] * x[1]};
    }
    Variables backward(Targets, VariableSpan gy) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        return {gy[0] + y * gy[1], gy[0] + x * gy[1]};
    }
};
struct OldSumAndProduct : Function<OldSumAndProduct> {
    Arrays forward(ArraySpan x) override { return {x[0] + x[1], x[0] * x[1]}; }
    Arrays backward(ArraySpan x, ArraySpan gy) override {
        return {gy[0] + x[1] * gy[1], gy[0] + x[0] * gy[1]};
    }
};

}  // namespace

TEST_CASE("forward_cpu and forward_gpu, backward_cpu and backward_gpu: by where the arrays are") {
    const CpusAsGpus scope;
    const auto run = [](const auto& function, Device device) {
        ran.clear();
        const Variable x(Array::full({2}, 3, Dtype::float64, device));
        const Variable y(Array::full({2}, 5, Dtype::float64, device));
        const Variable z = function(x, y);
        F::sum(z).backward();
        CHECK(values(z.data()) == Doubles{15, 15});
        CHECK(values(x.grad()) == Doubles{5, 5});
        CHECK(values(y.grad()) == Doubles{3, 3});
        return ran;
    };
    const auto node = [](const Variable& x, const Variable& y) { return apply<Product>(x, y)[0]; };
    CHECK(run(node, cuda::host()) == "forward_cpu ");
    CHECK(run(node, cuda::get_device(0)) == "forward_gpu ");
    CHECK(run(OldProduct(), cuda::host()) == "forward_cpu backward_cpu ");
    CHECK(run(OldProduct(), cuda::get_device(0)) == "forward_gpu backward_gpu ");
}

TEST_CASE("rules of optimizers: by where the parameter is, as for functions") {
    const CpusAsGpus scope;
    struct Noted : Optimizer {
        Noted() : Optimizer({"s"}) {}
        void update_one_cpu(Array&, const Array&, std::span<Array>) override { ran += "cpu "; }
        void update_one_gpu(Array&, const Array&, std::span<Array>) override { ran += "gpu "; }
        std::vector<Array> init_state_cpu(const Array& p) override {
            ran += "init_cpu ";
            return {Array::zeros(p.shape())};
        }
        std::vector<Array> init_state_gpu(const Array& p) override {
            ran += "init_gpu ";
            return {Array::zeros(p.shape())};
        }
    };
    const auto run = [](Device device) {
        ran.clear();
        const Variable p = as_parameter(Array::ones({2}, Dtype::float32, device));
        p.set_grad(Array::ones({2}, Dtype::float32, device));
        Noted optimizer;
        optimizer.setup({{"p", p}});
        optimizer.update();
        return ran;
    };
    CHECK(run(cuda::host()) == "init_cpu cpu ");
    CHECK(run(cuda::get_device(0)) == "init_gpu gpu ");
}

TEST_CASE(
    "a class without the method that is needed says so; without a backward it has no gradient") {
    struct Nothing : FunctionNode {};
    struct OldNothing : Function<OldNothing> {};
    struct OnGpu : Function<OnGpu> {
        Arrays forward_gpu(ArraySpan x) override { return {x[0]}; }
    };
    struct OnCpu : Function<OnCpu> {
        Arrays forward_cpu(ArraySpan x) override { return {x[0] * 2}; }
    };
    const Variable x = var({1, 2});
    contains(error_of<UnsupportedError>([&] { (void)apply<Nothing>(x); }),
             "[Nothing] forward_cpu: expected a class that overrides forward() or forward_cpu()");
    contains(error_of<UnsupportedError>([&] { (void)OldNothing()(x); }),
             "[OldNothing] forward_cpu");
    contains(error_of<UnsupportedError>([&] { (void)OnGpu()(x); }), "[OnGpu] forward_cpu");
    const Variable y = OnCpu()(x);
    y.set_grad(Array::ones({2}, Dtype::float64));
    y.backward();
    CHECK_FALSE(x.grad());
    const CpusAsGpus scope;
    const Variable there(x.data().to(cuda::get_device(0)));
    contains(error_of<UnsupportedError>([&] { (void)OnCpu()(there); }), "[OnCpu] forward_gpu");
    CHECK(OnGpu()(there).data().body() == there.data().body());
}

TEST_CASE("as many outputs as a class says, in a structured binding") {
    const Variable x = var({2}), y = var({5});
    const auto [w] = apply<MulAdd>(x, y, x);
    CHECK(values(w.data()) == Doubles{12});
    const auto [sum, product] = apply<SumAndProduct>(x, y);
    CHECK(values(sum.data()) == Doubles{7});
    CHECK(values(product.data()) == Doubles{10});
    (w + sum + product).backward();
    CHECK(values(x.grad()) == Doubles{6 + 1 + 5});
    const auto [old_sum, old_product] = unpack<2>(OldSumAndProduct().apply({x, y}));
    CHECK(values(old_sum.data()) == Doubles{7});
    CHECK(values(old_product.data()) == Doubles{10});
    const auto [same, more] = unpack<2>(apply<ExpSquare>({x}, 0.5));  // constructor arguments
    CHECK(values(more.data()) == Doubles{2});

    struct Liar : FunctionNode {
        Arrays forward(ArraySpan v) override { return {v[0], v[0]}; }
    };
    contains(error_of<InvalidError>([&] { (void)apply<Liar>(x); }),
             "[Liar] outputs, as n_outputs says: expected 1, got 2");
    contains(error_of<InvalidError>([&] { (void)unpack<3>(Variables{x}); }),
             "[unpack] values: expected 3, got 1");
}

TEST_CASE("creator()->forward() computes anew, of functions of plugins and of programs") {
    const Variable x = var({-1, 2});
    const Variable y = F::relu(x);
    const Array other = Array::from({3.0, -4.0}, {2});
    CHECK(values(y.creator()->forward(Arrays{other})[0]) == Doubles{3, 0});
    y.set_grad(Array::from({1.0, 2.0}, {2}));
    y.backward(/*retain_grad=*/true);
    // As in the example of a function test in Chainer's manual.
    const auto f = [&] { return y.creator()->forward(Arrays{x.data()}); };
    const auto [gx] = unpack<1>(gradient_check::numerical_grad(f, x.data(), y.grad()));
    gradient_check::assert_allclose(gx, x.grad());

    const auto attributes = F::leaky_relu(x, 0.5);
    CHECK(values(attributes.creator()->forward(Arrays{other})[0]) == Doubles{3, -2});
    const auto normalized = F::batch_normalization(
        Variable(Array::ones({2, 1})), Variable(Array::ones({1})), Variable(Array::zeros({1})));
    const Array column = Array::ones({2, 1}), one = Array::ones({1});
    CHECK(normalized.creator()->forward(Arrays{column, one, one}).size() == 1);  // no hidden ones

    // A second forward() does not change the arrays that the graph retains.
    const Variable w = mul_add(x, x, x);
    CHECK(values(w.creator()->forward(Arrays{other, other, other})[0]) == Doubles{12, 12});
    x.cleargrad();
    F::sum(w).backward();
    CHECK(values(x.grad()) == Doubles{-1, 5});
    GraphNode* creator = w.creator();
    const Ref<GraphNode> keep(creator);
    w.unchain_backward();
    CHECK_THROWS_AS((void)creator->forward(Arrays{other, other, other}), GraphError);
}

TEST_CASE("a function by name is called like one, and returns its only output") {
    const PluginFunction tanh("catena.tanh"), add("catena.add"), lstm("catena.lstm");
    const Variable x = var({0.5}), y = var({2});
    const Variable z = tanh(add(x, y));
    CHECK(values(z.data()) == values(F::tanh(x + y).data()));
    z.backward();
    CHECK(x.grad());
    CHECK(values(add(x.data(), y.data())) == Doubles{2.5});
    CHECK(values(tanh({&x})[0].data()) == values(F::tanh(x).data()));  // the span form still works
    // Optional inputs may be missing, and hidden outputs do not count.
    const PluginFunction linear("catena.linear"), normalize("catena.batch_normalization");
    const Variable rows(Array::ones({2, 1})), one(Array::ones({1})), W(Array::ones({1, 1}));
    CHECK(linear(rows, W).shape() == Shape{2, 1});
    CHECK(linear(rows, W, Variable()).shape() == Shape{2, 1});
    CHECK(normalize(rows, one, one).shape() == Shape{2, 1});
    const Variable c(Array::zeros({1, 1})), four(Array::zeros({1, 4}));
    contains(error_of<InvalidError>([&] { (void)lstm(c, four); }),
             "[catena.lstm] call: expected a function of one output, got one of 2");
}

TEST_CASE("identity of several, dropout in a mode, pow of a number, item()") {
    const Variable x = var({3}), y = var({4});
    const auto [a, b] = F::identity(x, y);
    CHECK(values(a.data()) == Doubles{3});
    CHECK(values(b.data()) == Doubles{4});
    (a * b).backward();
    CHECK(values(x.grad()) == Doubles{4});
    const auto [c, d] = F::identity(x.data(), y.data());
    CHECK(values(c) == Doubles{3});
    CHECK(values(d) == Doubles{4});

    CHECK(values(F::pow(x, 2).data()) == Doubles{9});
    CHECK(values(F::pow(2, x).data()) == Doubles{8});
    CHECK(values(F::pow(x.data(), 2)) == Doubles{9});
    CHECK(values(F::pow(2, x.data())) == Doubles{8});
    CHECK(values(F::pow(x, y).data()) == Doubles{81});

    const Array ones = Array::ones({1000}, Dtype::float64);
    for (const bool train : {false, true}) {
        const using_config scope(&Config::train, train);
        CHECK(values(F::dropout(ones, 0.5, false)) == values(ones));
        const double sum = F::sum(F::dropout(Variable(ones), 0.5, true)).item();
        CHECK(sum > 700);
        CHECK(sum < 1300);
        CHECK(values(F::dropout(ones, 0.5, true)) != values(ones));
        CHECK(config().train == train);
    }
    // The gradient uses the mask of the call in either mode.
    const Variable v(ones);
    const Variable masked = F::dropout(v, 0.5, true);
    F::sum(masked).backward();
    CHECK(values(v.grad()) == values(masked.data()));

    CHECK(F::sum(x).item() == 3);
    CHECK(x.item<float>() == 3.F);
    CHECK(x.data().item() == 3);
    CHECK_THROWS_AS((void)Variable(ones).item(), ShapeError);
}
