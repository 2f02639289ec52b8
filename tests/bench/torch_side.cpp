// libtorch's side of the works.
#include "work.hpp"

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

std::function<void()> adam_step() {
    torch::Tensor p = torch::randn(1 << 20, torch::requires_grad());
    p.mutable_grad() = torch::randn(1 << 20);
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
        {"Adam step, 1M parameters", 1, adam_step},
    };
}

}  // namespace
}  // namespace catena_bench

// The library's only symbol.
extern "C" __attribute__((visibility("default"))) void catena_bench_torch(
    int threads, std::vector<catena_bench::Work>* works) {
    *works = catena_bench::torch_works(threads);
}
