// TransformerBlock: the order of its layers, and their initial weights.
#include <catena/functions.hpp>
#include <catena/models/transformer.hpp>
#include <catena/operators.hpp>

#include <cmath>

namespace catena::models {
namespace F = functions;
namespace {

using Options = TransformerBlock::Options;

std::int64_t hidden_units(std::int64_t units, const Options& options) {
    if (options.hidden != 0) return options.hidden;
    return options.activation == TransformerBlock::Activation::swiglu ? 8 * units / 3 : 4 * units;
}

// The argument wscale of a layer whose weights are drawn from N(0, 0.02^2).
double scale_of(std::int64_t in_size) { return 0.02 * std::sqrt(static_cast<double>(in_size)); }

links::MultiHeadAttention::Options attention_of(std::int64_t units, const Options& options) {
    auto attention = options.attention;
    attention.dropout = options.dropout;
    attention.wscale = scale_of(units);
    return attention;
}

links::Linear layer(std::int64_t in_size, std::int64_t out_size, const Options& options) {
    return {in_size, out_size, scale_of(in_size), 0, !options.attention.bias};
}

}  // namespace

TransformerBlock::Normalization::Normalization(Norm norm, std::int64_t units, double eps) {
    if (norm == Norm::layer) layer.emplace(units, eps);
    else rms.emplace(units, eps);
}

Variable TransformerBlock::Normalization::operator()(const Variable& x) const {
    return layer ? (*layer)(x) : (*rms)(x);
}

void TransformerBlock::Normalization::visit(Visitor& visitor) {
    if (layer) layer->visit(visitor);
    else rms->visit(visitor);
}

TransformerBlock::TransformerBlock(std::int64_t units, const Options& options)
    : norm1(options.norm, units, options.eps),
      attention(units, options.heads, attention_of(units, options)),
      norm2(options.norm, units, options.eps),
      up(layer(units, hidden_units(units, options), options)),
      down(layer(hidden_units(units, options), units, options)),
      activation_(options.activation),
      dropout_(options.dropout) {
    if (activation_ == Activation::swiglu)
        gate = layer(units, hidden_units(units, options), options);
    for (const links::Linear* last : {&attention.out, &down}) {
        Array W = last->W.data();
        W *= 1 / std::sqrt(2.0 * static_cast<double>(options.depth));
    }
}

Variable TransformerBlock::operator()(const Variable& x) const { return (*this)(x, Variable()); }

Variable TransformerBlock::operator()(const Variable& x, const Variable& mask,
                                      const Variable& lengths) const {
    const Variable h = norm1(x);
    return transform(x, attention(h, h, mask, lengths));
}

Variable TransformerBlock::operator()(const Variable& x, Cache& cache, const Variable& mask) const {
    return transform(x, attention(norm1(x), cache, mask));
}

Variable TransformerBlock::transform(const Variable& x, const Variable& attended) const {
    const auto dropped = [&](const Variable& v) {
        return dropout_ > 0 ? F::dropout(v, dropout_) : v;
    };
    const Variable h = x + dropped(attended);
    const Variable normal = norm2(h), wide = up(normal, 2);
    const Variable active =
        activation_ == Activation::swiglu
            ? F::swiglu((*gate)(normal, 2), wide)
            : F::gelu(wide, activation_ == Activation::gelu_tanh ? "tanh" : "none");
    return h + dropped(down(active, 2));
}

void TransformerBlock::visit(Visitor& visitor) {
    visitor("norm1", norm1)("attention", attention)("norm2", norm2)("up", up)("down", down);
    if (gate) visitor("gate", *gate);
}

}  // namespace catena::models
