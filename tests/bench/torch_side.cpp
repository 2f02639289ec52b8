// The benchmarks of libtorch.
#include "work.hpp"

#include "torch_image_nets.hpp"

#include <torch/torch.h>

#include <memory>

namespace catena_bench {
namespace {

namespace F = torch::nn::functional;

torch::Tensor chain(const torch::Tensor& s) {
    torch::Tensor y = s + s;
    for (int i = 1; i < 1000; ++i) y = y + s;
    return y;
}

std::function<void()> mlp_step(int units) {
    torch::nn::Sequential model(torch::nn::Linear(784, units), torch::nn::ReLU(),
                                torch::nn::Linear(units, units), torch::nn::ReLU(),
                                torch::nn::Linear(units, 10));
    auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), 0.01);
    const torch::Tensor x = torch::rand({100, 784});
    const torch::Tensor t = torch::randint(0, 10, {100}, torch::kLong);
    return [=]() mutable {
        optimizer->zero_grad();
        torch::Tensor loss = F::cross_entropy(model->forward(x), t);
        loss.backward();
        optimizer->step();
    };
}

template <class Function>
Work elementwise(const char* name, Function function) {
    return {name, 1, [=] {
                const torch::Tensor a = torch::randn(1 << 20);
                const torch::Tensor b = torch::randn(1 << 20);
                return [=] {
                    const torch::NoGradGuard guard;
                    const torch::Tensor y = function(a, b);
                };
            }};
}

// 1-32c5-p2-64c5-p2-128-10 on 28x28 images.
std::function<void()> cnn_step() {
    using torch::nn::Conv2dOptions;
    torch::nn::Sequential model(
        torch::nn::Conv2d(Conv2dOptions(1, 32, 5)), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
        torch::nn::Conv2d(Conv2dOptions(32, 64, 5)), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
        torch::nn::Flatten(), torch::nn::Linear(1024, 128), torch::nn::ReLU(),
        torch::nn::Linear(128, 10));
    auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), 0.01);
    const torch::Tensor x = torch::randn({100, 1, 28, 28});
    const torch::Tensor t = torch::randint(0, 10, {100}, torch::kLong);
    return [=]() mutable {
        optimizer->zero_grad();
        F::cross_entropy(model->forward(x), t).backward();
        optimizer->step();
    };
}

// One training step on 8 images of 224x224.
template <class Net>
std::function<void()> image_net_step() {
    auto net = std::make_shared<Net>();
    torch::optim::SGDOptions options(0.01);
    options.momentum(0.9);
    auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), options);
    const torch::Tensor x = torch::randn({8, 3, 224, 224});
    const torch::Tensor t = torch::randint(0, 1000, {8}, torch::kLong);
    return [=] {
        optimizer->zero_grad();
        net->loss(x, t).backward();
        optimizer->step();
    };
}

std::function<void()> convolution() {
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(64, 64, 3).padding(1));
    const torch::Tensor x = torch::randn({32, 64, 56, 56}, torch::requires_grad());
    const torch::Tensor gy = torch::randn({32, 64, 56, 56});
    return [=]() mutable { conv->forward(x).backward(gy); };
}

// A language model with one layer: 10,000 words, 650 units, a batch of 20 texts of 35 words.
std::function<void()> language_model() {
    torch::nn::Embedding embed(10000, 650);
    torch::nn::LSTMCell lstm(650, 650);
    torch::nn::Linear out(650, 10000);
    const torch::Tensor words = torch::randint(0, 10000, {35, 20}, torch::kLong);
    return [=]() mutable {
        torch::Tensor h = torch::zeros({20, 650});
        torch::Tensor c = torch::zeros({20, 650});
        torch::Tensor loss = torch::zeros({});
        for (int i = 0; i < 34; ++i) {
            std::tie(h, c) = lstm->forward(embed->forward(words[i]), std::tuple(h, c));
            loss = loss + F::cross_entropy(out->forward(h), words[i + 1]);
        }
        loss.backward();
    };
}

// The same texts in one call of nn.LSTM.
std::function<void()> language_model_by_texts() {
    torch::nn::Embedding embed(10000, 650);
    torch::nn::LSTM lstm(650, 650);
    torch::nn::Linear out(650, 10000);
    const torch::Tensor words = torch::randint(0, 10000, {35, 20}, torch::kLong);
    return [=]() mutable {
        const torch::Tensor h = std::get<0>(lstm->forward(embed->forward(words.slice(0, 0, 34))));
        F::cross_entropy(out->forward(h).flatten(0, 1), words.slice(0, 1).flatten()).backward();
    };
}

// A text as 20 streams, read 35 words at a time.
class Streams {
public:
    Streams()
        : text_([] {
              const auto words = bench_text(10000);
              const auto length = static_cast<std::int64_t>((words.size() - 1) / 20 * 20);
              return torch::tensor(std::vector<std::int64_t>(words.begin(), words.begin() + length))
                  .view({20, -1})
                  .t()
                  .contiguous();
          }()) {}
    // Returns words (36, 20): 35 inputs, each followed by its target.
    torch::Tensor next() {
        if (at_ + 36 > text_.size(0)) at_ = 0;
        at_ += 35;
        return text_.slice(0, at_ - 35, at_ + 1);
    }

private:
    torch::Tensor text_;
    std::int64_t at_ = 0;
};

struct LanguageModel : torch::nn::Module {
    torch::nn::Embedding embed = register_module("embed", torch::nn::Embedding(10000, 650));
    torch::nn::LSTMCell cell = register_module("cell", torch::nn::LSTMCell(650, 650));
    torch::nn::LSTM layer = register_module("layer", torch::nn::LSTM(650, 650));
    torch::nn::Linear out = register_module("out", torch::nn::Linear(650, 10000));

    torch::Tensor by_cell(const torch::Tensor& words) {
        torch::Tensor loss = torch::zeros({});
        for (int i = 0; i < 35; ++i) {
            std::tie(h, c) = cell->forward(embed->forward(words[i]), std::tuple(h, c));
            loss = loss + F::cross_entropy(out->forward(h), words[i + 1]);
        }
        return loss;
    }
    torch::Tensor by_layer(const torch::Tensor& words) {
        const auto [all, last] =
            layer->forward(embed->forward(words.slice(0, 0, 35)),
                           std::tuple(h.view({1, 20, 650}), c.view({1, 20, 650})));
        h = std::get<0>(last).view({20, 650});
        c = std::get<1>(last).view({20, 650});
        return 35 * F::cross_entropy(out->forward(all).flatten(0, 1), words.slice(0, 1).flatten());
    }
    torch::Tensor h = torch::zeros({20, 650}), c = torch::zeros({20, 650});
};

std::function<void()> language_model_training(
    torch::Tensor (LanguageModel::*loss)(const torch::Tensor&)) {
    const auto model = std::make_shared<LanguageModel>();
    const auto streams = std::make_shared<Streams>();
    const auto optimizer = std::make_shared<torch::optim::SGD>(model->parameters(), 1);
    return [=] {
        optimizer->zero_grad();
        (model.get()->*loss)(streams->next()).backward();
        model->h = model->h.detach();
        model->c = model->c.detach();
        torch::nn::utils::clip_grad_norm_(model->parameters(), 5);
        optimizer->step();
    };
}

std::function<void()> adam_step(int n) {
    torch::Tensor p = torch::randn(n, torch::requires_grad());
    p.mutable_grad() = torch::randn(n);
    auto optimizer = std::make_shared<torch::optim::Adam>(std::vector<torch::Tensor>{p});
    return [=] { optimizer->step(); };
}

std::vector<Work> torch_works(int threads) {
    using torch::Tensor;
    torch::set_num_threads(threads);
    return {
        {"add, no graph", 1000,
         [] {
             const Tensor s = torch::ones({1}, torch::requires_grad());
             return [=] {
                 const torch::NoGradGuard guard;
                 chain(s);
             };
         }},
        {"add, graph", 1000,
         [] {
             const Tensor s = torch::ones({1}, torch::requires_grad());
             return [=] { chain(s); };
         }},
        {"add, forward and backward", 1000,
         [] {
             const Tensor s = torch::ones({1}, torch::requires_grad());
             return [=] { chain(s).backward(); };
         }},
        {"MLP step, 100 units", 1, [] { return mlp_step(100); }},
        {"MLP step, 1000 units", 1, [] { return mlp_step(1000); }},
        elementwise("add 1M", [](const Tensor& a, const Tensor& b) { return a + b; }),
        elementwise("exp 1M", [](const Tensor& a, const Tensor&) { return a.exp(); }),
        elementwise("tanh 1M", [](const Tensor& a, const Tensor&) { return a.tanh(); }),
        elementwise("sigmoid 1M", [](const Tensor& a, const Tensor&) { return a.sigmoid(); }),
        elementwise("relu 1M", [](const Tensor& a, const Tensor&) { return a.relu(); }),
        {"Adam step, 1M parameters", 1, [] { return adam_step(1 << 20); }},
        {"Adam step, 10M parameters", 1, [] { return adam_step(10'000'000); }},
        {"3x3 convolution, both ways", 1, convolution},
        {"CNN step", 1, cnn_step},
        {"NIN step", 1, [] { return image_net_step<Nin>(); }},
        {"AlexNet-BN step", 1, [] { return image_net_step<AlexNetBn>(); }},
        {"GoogLeNet step", 1, [] { return image_net_step<GoogLeNet>(); }},
        {"LSTM language model step", 1, language_model},
        {"the same, whole texts", 1, language_model_by_texts},
        {"LM training, a word", 20 * 35,
         [] { return language_model_training(&LanguageModel::by_cell); }},
        {"against nn.LSTM", 20 * 35,
         [] { return language_model_training(&LanguageModel::by_layer); }},
        {"CNN step, peak memory", 1, cnn_step, Memory::added},
    };
}

}  // namespace
}  // namespace catena_bench

// The library's only exported symbol.
extern "C" __attribute__((visibility("default"))) void catena_bench_torch(
    int threads, std::vector<catena_bench::Work>* works) {
    *works = catena_bench::torch_works(threads);
}
