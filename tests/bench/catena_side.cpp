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

Array labels(const Shape& shape, std::int64_t n) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * 7919 % n);
    return Array::from(values, shape);
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

// 1-32c5-p2-64c5-p2-128-10 on 28x28 images.
class Cnn : public Chain {
public:
    void visit(Visitor& visitor) override {
        visitor("conv1", conv1_)("conv2", conv2_)("l1", l1_)("l2", l2_);
    }
    Variable operator()(const Variable& x) override {
        const Variable h = F::max_pooling_2d(F::relu(conv1_(x)), 2);
        return l2_(F::relu(l1_(F::max_pooling_2d(F::relu(conv2_(h)), 2))));
    }

private:
    links::Convolution2D conv1_{1, 32, 5};
    links::Convolution2D conv2_{32, 64, 5};
    links::Linear l1_{1024, 128};
    links::Linear l2_{128, 10};
};

template <class Model>
struct Training {
    Training(Model net, const Shape& shape)
        : model(std::move(net)), x(normal(shape)), t(labels({shape[0]}, 10)) {
        optimizer.setup(model);
    }
    void step() {
        optimizer.cleargrads();
        Variable loss = F::softmax_cross_entropy(model(as_variable(x)), as_variable(t));
        std::move(loss).backward();  // nothing else holds the graph: it is freed on the way
        optimizer.update();
    }

    Model model;
    Array x;
    Array t;
    optimizers::SGD optimizer{0.01};
};

template <class Model>
std::function<void()> training(Model model, const Shape& shape) {
    return [t = std::make_shared<Training<Model>>(std::move(model), shape)] { t->step(); };
}
std::function<void()> mlp_step(int units) { return training(Mlp(units), {100, 784}); }
std::function<void()> cnn_step() { return training(Cnn(), {100, 1, 28, 28}); }

std::function<void()> convolution() {
    return [conv = links::Convolution2D(64, 64, 3, 1, 1), x = Variable(normal({32, 64, 56, 56})),
            gy = normal({32, 64, 56, 56})]() mutable {
        Variable y = conv(x);
        y.set_grad(gy);
        std::move(y).backward();
    };
}

// A language model of one layer: 10,000 words, 650 units, 20 texts, 35 words of each.
struct LanguageModel {
    LanguageModel() {
        const Array words = labels({35 * 20}, 10000);
        const auto values = words.to_vector<std::int32_t>();
        for (std::size_t i = 0; i < 35; ++i)
            text.push_back(as_variable(Array::from(std::span(values).subspan(i * 20, 20), {20})));
    }
    void step() {
        Variable h = as_variable(Array::zeros({20, 650}));
        Variable c = as_variable(Array::zeros({20, 650}));
        Variable loss;
        for (std::size_t i = 0; i < 34; ++i) {
            const auto next = F::lstm(c, from_input(embed(text[i])) + from_state(h));
            c = next.c;
            h = next.h;
            loss += F::softmax_cross_entropy(out(h), text[i + 1]);
        }
        std::move(loss).backward();
    }

    links::EmbedID embed{10000, 650};
    links::Linear from_input{650, 2600};
    links::Linear from_state{650, 2600};
    links::Linear out{650, 10000};
    std::vector<Variable> text;
};

std::function<void()> language_model() {
    return [model = std::make_shared<LanguageModel>()] { model->step(); };
}

template <class Call>
Work elementwise(const char* name, Call call) {
    return {name, 1, [=] {
                const Variable a = as_variable(normal({1 << 20}));
                const Variable b = as_variable(normal({1 << 20}));
                return [=] { call(a, b); };
            }};
}

std::function<void()> adam_step(int n) {
    struct State : Chain {
        explicit State(int size) : p(normal({size})) { p.set_grad(normal({size})); }
        void visit(Visitor& visitor) override { visitor("p", p); }

        Variable p;
        optimizers::Adam optimizer;
    };
    const auto state = std::make_shared<State>(n);
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
        {"Adam step, 1M parameters", 1, [] { return adam_step(1 << 20); }},
        {"Adam step, 10M parameters", 1, [] { return adam_step(10'000'000); }},
        {"3x3 convolution, both ways", 1, convolution},
        {"CNN step", 1, cnn_step},
        {"LSTM language model step", 1, language_model},
        {"CNN step, peak memory", 1, cnn_step, true},
    };
}

}  // namespace catena_bench
