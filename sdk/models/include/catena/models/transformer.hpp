// TransformerBlock: the layer that transformers repeat.
#pragma once

#include <catena/links.hpp>

namespace catena::models {

// Attention and an MLP in two residual branches, each after a normalization, for x (N, T, units):
// x += attention(norm1(x)); x += mlp(norm2(x)). (Vaswani and others, 2017; normalization before the
// branches: Radford and others, "Language Models are Unsupervised Multitask Learners", 2019.)
class TransformerBlock : public Chain {
public:
    enum class Norm : std::uint8_t { layer, rms };
    enum class Activation : std::uint8_t {
        gelu,
        gelu_tanh,  // the approximation of GPT-2
        swiglu,     // swiglu(gate(x), up(x)), without biases where `bias` is false
    };
    struct Options {
        std::int64_t heads = 4;
        std::int64_t hidden = 0;  // units of the MLP; 0: 4 units, or 8/3 units with swiglu
        Norm norm = Norm::layer;
        Activation activation = Activation::gelu;
        double eps = 1e-5;       // of the normalization
        double dropout = 0;      // of the branches, and of the weights of attention
        std::int64_t depth = 1;  // blocks of the net, for the initial weights
        links::MultiHeadAttention::Options attention;  // its bias is also that of the MLP
    };
    using Cache = links::MultiHeadAttention::Cache;

    // One of the two normalizations over the last axis.
    struct Normalization : Chain {
        Normalization(Norm norm, std::int64_t units, double eps);
        Variable operator()(const Variable& x) const override;
        void visit(Visitor& visitor) override;

        std::optional<links::LayerNormalization> layer;
        std::optional<links::RMSNormalization> rms;
    };

    // Weights are drawn from N(0, 0.02^2). For `out` of the attention and `down`, which end the
    // branches, the variance is divided by 2 depth. Throws the errors of its links.
    TransformerBlock(std::int64_t units, const Options& options);

    Variable operator()(const Variable& x) const override;
    // mask, lengths, cache: those of MultiHeadAttention.
    Variable operator()(const Variable& x, const Variable& mask,
                        const Variable& lengths = {}) const;
    Variable operator()(const Variable& x, Cache& cache, const Variable& mask = {}) const;

    void visit(Visitor& visitor) override;

    Normalization norm1;
    links::MultiHeadAttention attention;
    Normalization norm2;
    links::Linear up, down;
    std::optional<links::Linear> gate;  // of swiglu

private:
    Variable transform(const Variable& x, const Variable& attended) const;

    Activation activation_;
    double dropout_;
};

}  // namespace catena::models
