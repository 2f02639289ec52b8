// TransformerBlock: the order of its layers, and their initial weights. Gpt: its layouts and cache.
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/models/gpt.hpp>

#include <cmath>

namespace catena::models {
namespace F = functions;
namespace {

constexpr std::string_view layouts[] = {"gpt2", "llama"};

const Gpt::Sizes& checked(const Gpt::Sizes& sizes) {
    if (sizes.words < 1 || sizes.context < 1 || sizes.units < 1 || sizes.layers < 1)
        fail<ShapeError>(
            "[Gpt] words, context, units, layers: expected at least 1, got {}, {}, {}, {}",
            sizes.words, sizes.context, sizes.units, sizes.layers);
    if (!(sizes.dropout >= 0 && sizes.dropout < 1))
        fail<InvalidError>("[Gpt] dropout: expected 0 or more, below 1, got {}", sizes.dropout);
    return sizes;
}

constexpr double deviation = 0.02;  // of initial weights

TransformerBlock::Options block_of(const Gpt::Sizes& sizes, const Gpt::Details& details) {
    return {
        .heads = sizes.heads,
        .hidden = sizes.hidden,
        .norm = details.norm,
        .activation = details.activation,
        .eps = details.eps,
        .dropout = sizes.dropout,
        .depth = sizes.layers,
        .attention = {.kv_heads = sizes.kv_heads,
                      .head_size = sizes.head_size,
                      .bias = details.bias,
                      .causal = true,
                      .rotary = links::RotaryPositions(details.rotary_base, details.rotary_scaling),
                      .norm_eps = details.qk_norm ? details.eps : 0}};
}

// Keeps all tokens of the texts, to read them again when a text exceeds the context, and a cache.
class GptReader final : public NextToken {
public:
    explicit GptReader(const Gpt& model) : model_(model) {}

    std::vector<float> read(std::span<const std::int32_t> tokens, std::int64_t n) override {
        if (tokens.empty())
            throw InvalidError("[Gpt] prompt: expected at least one token, got none");
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        const auto context = static_cast<std::size_t>(model_.sizes().context);
        const auto rows = static_cast<std::size_t>(n);
        texts_.resize(rows);
        for (std::size_t i = 0; i < tokens.size(); ++i) texts_[i % rows].push_back(tokens[i]);
        if (texts_[0].size() > context) {
            const auto half = static_cast<std::ptrdiff_t>(std::max<std::size_t>(context / 2, 1));
            for (auto& text : texts_) text.erase(text.begin(), text.end() - half);
            cache_.clear();
        }
        make_room(n);
        const auto known = static_cast<std::ptrdiff_t>(cache_[0].length);
        std::vector<std::int32_t> x;
        for (const auto& text : texts_) x.insert(x.end(), text.begin() + known, text.end());
        const Shape shape{n, std::ssize(x) / n};
        const Array ids =
            Array::from(std::span<const std::int32_t>(x), shape, model_.embed.W.device());
        const Array scores = model_.next_scores(as_variable(ids), cache_).data();
        return scores.astype(Dtype::float32).to_vector<float>();
    }

private:
    // Makes a cache for n texts with places for all of their tokens.
    void make_room(std::int64_t n) {
        const std::int64_t length = std::ssize(texts_[0]), context = model_.sizes().context;
        if (cache_.empty()) cache_ = model_.make_cache(n, std::min(2 * length, context));
        for (auto& layer : cache_) {
            const std::int64_t places = layer.places();
            for (Array* kept : {&layer.k, &layer.v}) {
                if (kept->shape()[0] > n) *kept = F::get_item(*kept, {0}, {n});
                if (length <= places) continue;
                Shape more = kept->shape();
                more[1] = std::min(2 * length, context) - places;
                *kept = F::concat({*kept, Array::zeros(more, kept->dtype(), kept->device())}, 1);
            }
        }
    }

    const Gpt& model_;
    std::vector<std::vector<std::int32_t>> texts_;
    Gpt::Cache cache_;
};

}  // namespace

std::string_view to_string(Gpt::Layout layout) { return layouts[static_cast<std::size_t>(layout)]; }

Gpt::Layout layout_from_string(std::string_view name) {
    const auto* found = std::ranges::find(layouts, name);
    if (found == std::end(layouts))
        fail<InvalidError>("[Gpt] layout: expected gpt2 or llama, got '{}'", name);
    return static_cast<Gpt::Layout>(found - std::begin(layouts));
}

Gpt::Details::Details(Layout layout)
    : norm(layout == Layout::gpt2 ? TransformerBlock::Norm::layer : TransformerBlock::Norm::rms),
      activation(layout == Layout::gpt2 ? TransformerBlock::Activation::gelu_tanh
                                        : TransformerBlock::Activation::swiglu),
      learned_positions(layout == Layout::gpt2),
      rotary_base(layout == Layout::gpt2 ? 0 : 10000),
      bias(layout == Layout::gpt2),
      tied(layout == Layout::gpt2) {}

Gpt::Gpt(const Sizes& sizes, const Details& details)
    : embed(checked(sizes).words, sizes.units),
      norm(details.norm, sizes.units, details.eps),
      sizes_(sizes),
      details_(details) {
    Array vectors_of_words = embed.W.data();
    vectors_of_words *= deviation;
    if (details.learned_positions)
        position = as_parameter(initializers::Normal(deviation)(Shape{sizes.context, sizes.units}));
    const TransformerBlock::Options block = block_of(sizes, details);  // one table of positions
    for (std::int64_t i = 0; i < sizes.layers; ++i) blocks.emplace_back(sizes.units, block);
    if (!details.tied)
        head.emplace(sizes.units, sizes.words,
                     deviation * std::sqrt(static_cast<double>(sizes.units)), 0, true);
}

Variable Gpt::vectors(const Variable& x, std::int64_t offset) const {
    const std::int64_t rest = sizes_.context - offset;
    if (x.ndim() != 2 || x.shape()[1] > rest)
        fail<ShapeError>("[Gpt] x: expected (N, T) with T up to {}, got {}", rest,
                         to_string(x.shape()));
    Variable h = embed(x);
    if (position) {
        const std::int64_t end = offset + x.shape()[1];
        h = h + F::get_item(position, {offset}, {end});
    }
    return sizes_.dropout > 0 ? F::dropout(h, sizes_.dropout) : h;
}

Variable Gpt::scores(const Variable& h) const {
    const Variable normal = norm(h);
    const std::int64_t batch_axes = h.ndim() - 1;
    return head ? (*head)(normal, batch_axes) : F::linear(normal, embed.W, {}, batch_axes);
}

Variable Gpt::operator()(const Variable& x) const { return (*this)(x, Variable()); }

Variable Gpt::operator()(const Variable& x, const Variable& mask, const Variable& lengths) const {
    Variable h = vectors(x, 0);
    for (const TransformerBlock& block : blocks) h = block(h, mask, lengths);
    return scores(h);
}

Variable Gpt::loss(const Variable& x, const Variable& t) const {
    const Variable y = (*this)(x);
    return F::softmax_cross_entropy(F::reshape(y, {t.size(), sizes_.words}),
                                    F::reshape(t, {t.size()}));
}

Gpt::Cache Gpt::make_cache(std::int64_t n, std::int64_t places) const {
    Cache cache;
    for (const TransformerBlock& block : blocks)
        cache.push_back(block.attention.make_cache(n, places));
    return cache;
}

Variable Gpt::next_scores(const Variable& x, Cache& cache) const {
    if (cache.size() != blocks.size())
        fail<ShapeError>("[Gpt] cache: expected {} blocks, got {}", blocks.size(), cache.size());
    Variable h = vectors(x, cache[0].length);
    if (x.size() == 0)
        fail<ShapeError>("[Gpt] x: expected at least one token, got {}", to_string(x.shape()));
    for (std::size_t i = 0; i < blocks.size(); ++i) h = blocks[i](h, cache[i]);
    const std::int64_t n = x.shape()[0], t = x.shape()[1];
    return scores(F::reshape(F::get_item(h, {0, t - 1}, {n, t}), {n, sizes_.units}));
}

std::unique_ptr<NextToken> Gpt::next_token() const { return std::make_unique<GptReader>(*this); }

void Gpt::visit(Visitor& visitor) {
    visitor("embed", embed)("position", position);
    for (std::size_t i = 0; i < blocks.size(); ++i) visitor(fmt::format("block{}", i), blocks[i]);
    visitor("norm", norm);
    if (head) visitor("head", *head);
}

// ---- TransformerBlock

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
