// Functions of catena that are compared with PyTorch's, eager or compiled.
#include "models.hpp"
#include "work.hpp"

#include <catena/models.hpp>

#include <memory>
#include <random>

namespace catena_bench {
namespace {

Array random_normal(const Shape& shape) { return initializers::Normal(1)(shape); }

// Returns int64 numbers below n, as PyTorch's indices are.
Array random_rows(std::int64_t size, std::int64_t n) {
    std::mt19937 random(1);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(size));
    for (std::int64_t& row : rows) row = static_cast<std::int64_t>(random()) % n;
    return Array::from(rows, {size});
}

// Calls a function of variables of these shapes, without a graph.
template <class F>
Work forward_of(std::string name, const Shape& shape, F f) {
    return {std::move(name), 1, [=] {
                return [=, x = as_variable(random_normal(shape))] {
                    const no_backprop_mode scope;
                    f(x);
                };
            }};
}

// Computes the gradients of all inputs, for a random gradient of the output.
template <class F>
Work gradients_of(std::string name, std::vector<Shape> shapes, F f) {
    return {std::move(name), 1, [=] {
                std::vector<Variable> x;
                for (const Shape& shape : shapes) x.emplace_back(random_normal(shape));
                return [=, gy = random_normal(f(x).shape())]() mutable {
                    for (Variable& one : x) one.cleargrad();
                    Variable y = f(x);
                    y.set_grad(gy);
                    std::move(y).backward();
                };
            }};
}

Work attention(std::string name, std::int64_t tokens) {
    const Shape shape = {8, 4, tokens, 64};
    return gradients_of(std::move(name), {shape, shape, shape}, [](const auto& x) {
        return F::scaled_dot_product_attention(x[0], x[1], x[2], {}, {}, {}, true);
    });
}

constexpr models::Gpt::Sizes gpt_sizes{.words = 65, .layout = models::Gpt::Layout::gpt2};

// A training step on 8 texts of 256 tokens.
std::function<void()> gpt_step(Dtype products = Dtype::float32) {
    struct State {
        models::Gpt model{gpt_sizes};
        Variable x = as_variable(labels({8, 256}, 65)), t = as_variable(labels({8, 256}, 65));
        optimizers::AdamW optimizer{3e-4};
    };
    const auto state = std::make_shared<State>();
    state->optimizer.setup(state->model);
    return [=] {
        state->optimizer.cleargrads();
        const autocast scope(products);
        Variable loss = state->model.loss(state->x, state->t);
        std::move(loss).backward();
        state->optimizer.update();
    };
}

// The token after 256 tokens in the cache, by GPT-2 of 124M parameters.
std::function<void()> token(int threads) {
    Device::current().set_threads(threads);
    struct State {
        models::Gpt model{{.words = 50257,
                           .context = 1024,
                           .units = 768,
                           .layers = 12,
                           .heads = 12,
                           .layout = models::Gpt::Layout::gpt2}};
        models::Gpt::Cache cache = model.make_cache(1, 1024);
        Variable x = as_variable(labels({1, 1}, 50257));
    };
    return [state = std::make_shared<State>()] {
        const no_backprop_mode scope;
        const using_config testing(&Config::train, false);
        for (auto& layer : state->cache) layer.length = 256;
        F::argmax(state->model.next_scores(state->x, state->cache), 1);
    };
}

}  // namespace

std::vector<Work> function_works(int threads) {
    Device::current().set_threads(threads);
    std::vector<Work> works = {
        attention("attention, 256 tokens", 256),
        attention("attention, 2048 tokens", 2048),
        gradients_of("layer normalization", {{2048, 1024}, {1024}, {1024}},
                     [](const auto& x) { return F::layer_normalization(x[0], x[1], x[2]); }),
        gradients_of("GELU 1M", {{1 << 20}}, [](const auto& x) { return F::gelu(x[0]); }),
        gradients_of("GELU by tanh 1M", {{1 << 20}},
                     [](const auto& x) { return F::gelu(x[0], "tanh"); }),
        gradients_of("cross entropy, 50257 classes", {{2048, 50257}},
                     [t = as_variable(random_rows(2048, 50257))](const auto& x) {
                         return F::softmax_cross_entropy(x[0], t);
                     }),
        forward_of("gather 1M rows", {100'000, 64},
                   [rows = as_variable(random_rows(1'000'000, 100'000))](const Variable& x) {
                       F::take(x, rows);
                   }),
        {"scatter-add 1M rows", 1,
         [] {
             return [x = random_normal({100'000, 64}), rows = random_rows(1'000'000, 100'000),
                     src = random_normal({1'000'000, 64})] { F::index_add(x, 0, rows, src); };
         }},
    };
    works.push_back({"GPT step", 1, [] { return gpt_step(); }});
    works.push_back({"GPT step, peak memory", 1, [] { return gpt_step(); }, Memory::added});
    works.push_back({"GPT step, memory of the process", 1, [] { return gpt_step(); }, Memory::all});
    works.push_back({"token, 1 thread", 1, [] { return token(1); }});
    works.push_back({"token, 2 threads", 1, [] { return token(2); }});
    const Shape shape = {4096, 1024};
    for (const std::int64_t axis : {0, 1}) {
        const std::string end = ", axis " + std::to_string(axis);
        works.push_back(
            forward_of("max" + end, shape, [=](const Variable& x) { F::max(x, axis); }));
        works.push_back(
            forward_of("mean" + end, shape, [=](const Variable& x) { F::mean(x, axis); }));
        works.push_back(
            forward_of("argmax" + end, shape, [=](const Variable& x) { F::argmax(x, axis); }));
        works.push_back(
            forward_of("cumsum" + end, shape, [=](const Variable& x) { F::cumsum(x, axis); }));
    }
    return works;
}

std::function<void()> bfloat16_gpt_step() { return gpt_step(Dtype::bfloat16); }

}  // namespace catena_bench
