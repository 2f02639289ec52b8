// The measured networks.
#pragma once

#include <catena/catena.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace catena_bench {

using namespace catena;  // NOLINT: one side, one vocabulary
namespace F = catena::functions;

// Layers: 784, units, units, 10.
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

// A language model with one LSTM layer. Its second bias is redundant, but some peers have it.
class LanguageModel : public Chain {
public:
    LanguageModel(int words, int units, bool two_biases)
        : embed_(words, units),
          from_input_(units, 4 * units),
          from_state_(units, 4 * units, 1, 0, !two_biases),
          out_(units, words),
          units_(units) {}
    void visit(Visitor& visitor) override {
        visitor("embed", embed_)("from_input", from_input_)("from_state", from_state_)("out", out_);
    }
    // Returns the loss of each word given the words before it, summed over all words after the
    // first. text[i] has word i of each text (N,).
    Variable loss_by_words(std::span<const Variable> text) {
        State state = begin(text[0].shape()[0], text[0].device());
        Variable loss;
        for (std::size_t i = 0; i + 1 < text.size(); ++i) {
            state = F::lstm(state.c, from_input_(embed_(text[i])) + from_state_(state.h));
            loss += F::softmax_cross_entropy(out_(state.h), text[i + 1]);
        }
        return loss;
    }
    // Returns the mean loss of texts (T, N). Only the LSTM's products with the state are computed
    // word by word, all others for all words at once.
    Variable loss(const Variable& text) {
        const std::int64_t steps = text.shape()[0] - 1, n = text.shape()[1];
        const Variable given = F::split_axis(text, {steps}, 0)[0];
        const Variable next = F::split_axis(text, {1}, 0)[1];
        const Variable bias = from_state_.b ? from_input_.b + from_state_.b : from_input_.b;
        const Variable words = F::reshape(embed_(given), {steps * n, units_});
        const Variable x = F::linear(words, from_input_.W, bias);
        const Variable h = F::lstm_sequence(F::reshape(x, {steps, n, 4 * units_}), from_state_.W).h;
        return F::softmax_cross_entropy(out_(F::reshape(h, {steps * n, units_})),
                                        F::reshape(next, {steps * n}));
    }

private:
    using State = decltype(F::lstm(Variable(), Variable()));
    State begin(std::int64_t n, Device device) const {
        const auto zeros = [&] {
            return as_variable(Array::zeros({n, units_}, Dtype::float32, device));
        };
        return {zeros(), zeros()};
    }

    links::EmbedID embed_;
    links::Linear from_input_;
    links::Linear from_state_;
    links::Linear out_;
    std::int64_t units_;
};

// Returns pseudorandom int32 numbers below n.
inline Array labels(const Shape& shape, std::int64_t n) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * 7919 % n);
    return Array::from(values, shape);
}

}  // namespace catena_bench
