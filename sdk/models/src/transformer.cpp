// TransformerBlock: the order of its layers, and their initial weights.
#include <catena/functions.hpp>
#include <catena/initializers.hpp>
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

links::MultiHeadAttention::Options attention_of(const Options& options) {
    auto attention = options.attention;
    attention.dropout = options.dropout;
    return attention;
}

void draw(links::Linear& layer, double deviation) {
    layer.W.data().copy_from(initializers::Normal(deviation)(layer.W.shape()));
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
      attention(units, options.heads, attention_of(options)),
      norm2(options.norm, units, options.eps),
      up(units, hidden_units(units, options), 1, 0, !options.attention.bias),
      down(hidden_units(units, options), units, 1, 0, !options.attention.bias),
      activation_(options.activation),
      dropout_(options.dropout) {
    if (activation_ == Activation::swiglu)
        gate.emplace(units, hidden_units(units, options), 1, 0, !options.attention.bias);
    constexpr double deviation = 0.02;
    for (links::Linear* layer : {&attention.q, &attention.k, &attention.v, &up})
        draw(*layer, deviation);
    if (gate) draw(*gate, deviation);
    for (links::Linear* layer : {&attention.out, &down})
        draw(*layer, deviation / std::sqrt(2.0 * static_cast<double>(options.depth)));
}

Variable TransformerBlock::operator()(const Variable& x) const {
    return transform(x, attention(norm1(x)));
}

Variable TransformerBlock::operator()(const Variable& x, const Variable& mask) const {
    const Variable h = norm1(x);
    return transform(x, attention(h, h, mask));
}

Variable TransformerBlock::operator()(const Variable& x, Cache& cache) const {
    return transform(x, attention(norm1(x), cache));
}

Variable TransformerBlock::transform(const Variable& x, const Variable& attended) const {
    const auto dropped = [&](const Variable& v) { return dropout_ > 0 ? F::dropout(v, dropout_) : v; };
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
