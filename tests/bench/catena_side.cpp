// catena's side of the works.
#include "work.hpp"

#include <catena/catena.hpp>

#include <memory>

namespace catena_bench {
namespace {

using namespace catena;  // NOLINT: one side, one vocabulary
namespace F = catena::functions;

Array normal(const Shape& shape) { return initializers::Normal(1)(shape); }

Variable chain(const Variable& s) {
    Variable y = s + s;
    for (int i = 1; i < 1000; ++i) y = y + s;
    return y;
}

class Mlp : public Chain {
public:
    explicit Mlp(int units) : l1_(784, units), l2_(units, units), l3_(units, 10) {}
    void visit(Visitor& visitor) override { visitor("l1", l1_)("l2", l2_)("l3", l3_); }
    Variable operator()(const Variable& x) override { return l3_(F::relu(l2_(F::relu(l1_(x))))); }

private:
    links::Linear l1_;
    links::Linear l2_;
    links::Linear l3_;
};

struct Training {
    explicit Training(int units) : model(units), x(normal({100, 784})) {
        std::vector<std::int32_t> labels(100);
        for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int>(i * 7 % 10);
        t = Array::from(labels, {100});
        optimizer.setup(model);
    }
    void step() {
        optimizer.cleargrads();
        F::softmax_cross_entropy(model(as_variable(x)), as_variable(t)).backward();
        optimizer.update();
    }

    Mlp model;
    Array x;
    Array t;
    optimizers::SGD optimizer{0.01};
};

std::function<void()> mlp_step(int units) {
    return [training = std::make_shared<Training>(units)] { training->step(); };
}

template <class Call>
Work elementwise(const char* name, Call call) {
    return {name, 1, [=] {
                const Variable a = as_variable(normal({1 << 20}));
                const Variable b = as_variable(normal({1 << 20}));
                return [=] { call(a, b); };
            }};
}

std::function<void()> adam_step() {
    struct State : Chain {
        State() { p.set_grad(normal({1 << 20})); }
        void visit(Visitor& visitor) override { visitor("p", p); }

        Variable p{normal({1 << 20})};
        optimizers::Adam optimizer;
    };
    const auto state = std::make_shared<State>();
    state->optimizer.setup(*state);
    return [=] { state->optimizer.update(); };
}

}  // namespace

std::vector<Work> catena_works(int threads) {
    Device::current().set_threads(threads);
    return {
        {"add, no graph", 1000,
         [] {
             return [s = Variable(Array::ones({1}))] {
                 const no_backprop_mode scope;
                 chain(s);
             };
         }},
        {"add, graph", 1000, [] { return [s = Variable(Array::ones({1}))] { chain(s); }; }},
        {"add, forward and backward", 1000,
         [] { return [s = Variable(Array::ones({1}))] { chain(s).backward(); }; }},
        {"MLP step, 100 units", 1, [] { return mlp_step(100); }},
        {"MLP step, 1000 units", 1, [] { return mlp_step(1000); }},
        elementwise("add 1M", [](const Variable& a, const Variable& b) { return a + b; }),
        elementwise("exp 1M", [](const Variable& a, const Variable&) { return F::exp(a); }),
        elementwise("tanh 1M", [](const Variable& a, const Variable&) { return F::tanh(a); }),
        elementwise("sigmoid 1M", [](const Variable& a, const Variable&) { return F::sigmoid(a); }),
        elementwise("relu 1M", [](const Variable& a, const Variable&) { return F::relu(a); }),
        {"Adam step, 1M parameters", 1, adam_step},
    };
}

}  // namespace catena_bench
