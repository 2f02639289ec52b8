// The benchmarks of catena.
#include "models.hpp"
#include "work.hpp"

#include <catena/models.hpp>

#include <memory>

namespace catena_bench {
namespace {

Array normal(const Shape& shape) { return initializers::Normal(1)(shape); }

Variable chain(const Variable& s) {
    Variable y = s + s;
    for (int i = 1; i < 1000; ++i) y = y + s;
    return y;
}

template <class Model>
struct Training {
    Training(Model net, const Shape& shape)
        : model(std::move(net)), x(normal(shape)), t(labels({shape[0]}, 10)) {
        optimizer.setup(model);
    }
    void step(Dtype products) {
        optimizer.cleargrads();
        const autocast scope(products);
        Variable loss = F::softmax_cross_entropy(model(as_variable(x)), as_variable(t));
        std::move(loss).backward();  // frees the graph during the pass
        optimizer.update();
    }

    Model model;
    Array x;
    Array t;
    optimizers::SGD optimizer{0.01};
};

template <class Model>
std::function<void()> training(Model model, const Shape& shape, Dtype products) {
    return
        [=, t = std::make_shared<Training<Model>>(std::move(model), shape)] { t->step(products); };
}
std::function<void()> mlp_step(int units, Dtype products = Dtype::float32) {
    return training(Mlp(units), {100, 784}, products);
}
std::function<void()> cnn_step(Dtype products = Dtype::float32) {
    return training(Cnn(), {100, 1, 28, 28}, products);
}

// One training step of an image net on 8 images of 224x224.
template <class Net>
Work image_net(const char* name) {
    return {name, 1, [] {
                struct State {
                    Net net;
                    Array x = normal({8, 3, 224, 224});
                    Array t = labels({8}, 1000);
                    optimizers::MomentumSGD optimizer{0.01};
                };
                const auto state = std::make_shared<State>();
                state->optimizer.setup(state->net);
                return [state] {
                    state->optimizer.cleargrads();
                    Variable loss =
                        state->net.loss(as_variable(state->x), as_variable(state->t)).loss;
                    std::move(loss).backward();
                    state->optimizer.update();
                };
            }};
}

std::function<void()> convolution() {
    return [conv = links::Convolution2D(64, 64, 3, 1, 1), x = Variable(normal({32, 64, 56, 56})),
            gy = normal({32, 64, 56, 56})]() mutable {
        Variable y = conv(x);
        y.set_grad(gy);
        std::move(y).backward();
    };
}

// 10,000 words, 650 units, a batch of 20 texts of 35 words.
std::function<void()> language_model() {
    std::vector<Variable> text;
    const auto words = labels({35 * 20}, 10000).to_vector<std::int32_t>();
    for (std::size_t i = 0; i < 35; ++i)
        text.push_back(as_variable(Array::from(std::span(words).subspan(i * 20, 20), {20})));
    return [=, model = std::make_shared<LanguageModel>(10000, 650, true)] {
        Variable loss = model->loss_by_words(text);
        std::move(loss).backward();
    };
}

// The same texts in one array.
std::function<void()> language_model_by_texts() {
    return [text = as_variable(labels({35, 20}, 10000)),
            model = std::make_shared<LanguageModel>(10000, 650, true)] {
        Variable loss = model->loss(text);
        std::move(loss).backward();
    };
}

// A training step on the benchmark's text: 20 streams, 35 words each, SGD with clipped gradients.
Work language_model_training(const char* name) {
    return {name, 20 * 35, [] {
                struct State {
                    models::LanguageModel model{{.words = 10000, .units = 650}};
                    RunningText text{bench_text(10000), 20, 35};
                    models::LanguageModel::State state = model.begin(20);
                    optimizers::SGD optimizer{1};
                };
                const auto s = std::make_shared<State>();
                s->optimizer.setup(s->model);
                return [s] {
                    TextBatch batch = s->text.next();
                    if (batch.rows.size() < 35) batch = s->text.next();
                    const Variable loss = s->model.loss(batch, s->state);
                    s->optimizer.cleargrads();
                    (loss * 35.0).backward();
                    s->state.unchain_backward();
                    s->optimizer.clip_grads(5);
                    s->optimizer.update();
                };
            }};
}

template <class Call>
Work on_two_arrays(const char* name, Call call) {
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

        Parameter p;
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
        on_two_arrays("add 1M", [](const Variable& a, const Variable& b) { return a + b; }),
        on_two_arrays("exp 1M", [](const Variable& a, const Variable&) { return F::exp(a); }),
        on_two_arrays("tanh 1M", [](const Variable& a, const Variable&) { return F::tanh(a); }),
        on_two_arrays("sigmoid 1M",
                      [](const Variable& a, const Variable&) { return F::sigmoid(a); }),
        on_two_arrays("relu 1M", [](const Variable& a, const Variable&) { return F::relu(a); }),
        {"Adam step, 1M parameters", 1, [] { return adam_step(1 << 20); }},
        {"Adam step, 10M parameters", 1, [] { return adam_step(10'000'000); }},
        {"3x3 convolution, both ways", 1, convolution},
        {"CNN step", 1, [] { return cnn_step(); }},
        image_net<models::NIN>("NIN step"),
        image_net<models::AlexNetBN>("AlexNet-BN step"),
        image_net<models::GoogLeNet>("GoogLeNet step"),
        {"LSTM language model step", 1, language_model},
        {"the same, whole texts", 1, language_model_by_texts},
        language_model_training("LM training, a word"),
        language_model_training("against nn.LSTM"),
        {"CNN step, peak memory", 1, [] { return cnn_step(); }, Memory::added},
    };
}

std::vector<Work> bfloat16_works(int threads) {
    Device::current().set_threads(threads);
    return {
        {"MLP step, 100 units", 1, [] { return mlp_step(100, Dtype::bfloat16); }},
        {"MLP step, 1000 units", 1, [] { return mlp_step(1000, Dtype::bfloat16); }},
        {"CNN step", 1, [] { return cnn_step(Dtype::bfloat16); }},
        {"GPT step", 1, bfloat16_gpt_step},
    };
}

}  // namespace catena_bench
