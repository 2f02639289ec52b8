// Gpt: its layouts, its cache, and files of models trained elsewhere.
#include <catena/array_file.hpp>
#include <catena/core/config.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/functions.hpp>
#include <catena/initializers.hpp>
#include <catena/models/gpt.hpp>
#include <catena/operators.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "parse_json.hpp"

namespace catena::models {
namespace F = functions;
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

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
    return {.heads = sizes.heads,
            .hidden = sizes.hidden,
            .norm = details.norm,
            .activation = details.activation,
            .eps = details.eps,
            .dropout = sizes.dropout,
            .depth = sizes.layers,
            .attention = {.kv_heads = sizes.kv_heads,
                          .bias = details.bias,
                          .causal = true,
                          .rotary_base = details.rotary_base}};
}

// Keeps the texts, and their keys and values.
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
      sizes_(sizes) {
    Array vectors_of_words = embed.W.data();
    vectors_of_words *= deviation;
    if (details.learned_positions)
        position = as_parameter(initializers::Normal(deviation)(Shape{sizes.context, sizes.units}));
    for (std::int64_t i = 0; i < sizes.layers; ++i)
        blocks.emplace_back(sizes.units, block_of(sizes, details));
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

Variable Gpt::operator()(const Variable& x) const {
    Variable h = vectors(x, 0);
    for (const TransformerBlock& block : blocks) h = block(h);
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

// ---- Files of models trained elsewhere

namespace {

class GptFile {
public:
    explicit GptFile(const fs::path& folder) : config_file_(folder / "config.json") {
        std::ifstream in(config_file_, std::ios::binary);
        if (!in) wrong("file", "one that can be read", "none");
        config_ = parse_json(std::string{std::istreambuf_iterator<char>(in), {}});
        if (!config_.is_object()) wrong("file", "a JSON object", "something else");
        const std::string type = text("model_type", "none");
        if (type != "gpt2" && type != "llama") wrong("model_type", "gpt2 or llama", type);
        layout_ = layout_from_string(type);
        weights_file_ = folder / "model.safetensors";
        weights_ = load_arrays(weights_file_, cuda::host());
    }

    Gpt load() { return layout_ == Gpt::Layout::gpt2 ? gpt2() : llama(); }

private:
    [[noreturn]] void wrong(std::string_view what, std::string_view expected,
                            std::string_view got) const {
        fail<DataError>("[load_gpt] {}: {}: expected {}, got {}", config_file_.string(), what,
                        expected, got);
    }
    std::string text(const char* name, const std::string& otherwise) const {
        const auto found = config_.find(name);
        if (found == config_.end() || found->is_null()) return otherwise;
        return found->is_string() ? found->get<std::string>() : found->dump();
    }
    double number(const char* name, double otherwise) const {
        const auto found = config_.find(name);
        if (found == config_.end() || found->is_null()) return otherwise;
        if (!found->is_number()) wrong(name, "a number", found->dump());
        return found->get<double>();
    }
    std::int64_t integer(const char* name, std::int64_t otherwise = 0) const {
        const double value = number(name, static_cast<double>(otherwise));
        if (!(value >= 1 && value <= 0x1p30 && value == std::floor(value)))
            wrong(name, "an integer from 1 to 2^30", text(name, "none"));
        return static_cast<std::int64_t>(value);
    }
    void require(const char* name, const std::string& value) const {
        if (const std::string got = text(name, value); got != value) wrong(name, value, got);
    }

    // The array of a name, with or without the prefix of the whole model.
    const Array& weight(const std::string& name) const {
        for (const char* prefix : {"", "transformer.", "model."})
            if (const auto found = weights_.find(prefix + name); found != weights_.end())
                return found->second;
        fail<DataError>("[load_gpt] {}: expected an array {}, got none", weights_file_.string(),
                        name);
    }
    const Array& weight(const std::string& name, const Shape& shape) const {
        const Array& found = weight(name);
        if (found.shape() != shape)
            fail<DataError>("[load_gpt] {}: {}: expected {}, got {}", weights_file_.string(), name,
                            to_string(shape), to_string(found.shape()));
        return found;
    }
    void set(const Parameter& parameter, const std::string& name) const {
        copy(parameter, weight(name, parameter.shape()));
    }
    static void copy(const Parameter& parameter, const Array& value) {
        parameter.data().copy_from(value.astype(parameter.dtype()));
    }

    Gpt gpt2() {
        const Shape vectors = weight("wte.weight").shape();
        require("activation_function", "gelu_new");
        const Gpt::Sizes sizes{.words = vectors[0],
                               .context = integer("n_positions", 1024),
                               .units = integer("n_embd", 768),
                               .layers = integer("n_layer", 12),
                               .heads = integer("n_head", 12),
                               .hidden = integer("n_inner", 4 * integer("n_embd", 768))};
        Gpt::Details details(layout_);
        details.eps = number("layer_norm_epsilon", 1e-5);
        Gpt model(sizes, details);
        set(model.embed.W, "wte.weight");
        set(model.position, "wpe.weight");
        const auto normalization = [&](TransformerBlock::Normalization& norm,
                                       const std::string& name) {
            set(norm.layer->gamma, name + ".weight");
            set(norm.layer->beta, name + ".bias");
        };
        // Their matrices are (in, out). Several layers may share one, side by side.
        const auto linear = [&](const std::string& name,
                                std::initializer_list<links::Linear*> layers) {
            const auto n = static_cast<std::int64_t>(layers.size());
            const std::int64_t in = (*layers.begin())->W.shape()[1];
            const std::int64_t out = (*layers.begin())->W.shape()[0];
            const Array& W = weight(name + ".weight", {in, n * out});
            const Array& b = weight(name + ".bias", {n * out});
            std::int64_t begin = 0;
            for (const links::Linear* layer : layers) {
                const std::int64_t end = begin + out;
                copy(layer->W, F::transpose(F::get_item(W, {0, begin}, {in, end}), {1, 0}));
                copy(layer->b, F::get_item(b, {begin}, {end}));
                begin = end;
            }
        };
        for (std::size_t i = 0; i < model.blocks.size(); ++i) {
            const std::string name = fmt::format("h.{}.", i);
            TransformerBlock& block = model.blocks[i];
            normalization(block.norm1, name + "ln_1");
            auto& attention = block.attention;
            linear(name + "attn.c_attn", {&attention.q, &attention.k, &attention.v});
            linear(name + "attn.c_proj", {&attention.out});
            normalization(block.norm2, name + "ln_2");
            linear(name + "mlp.c_fc", {&block.up});
            linear(name + "mlp.c_proj", {&block.down});
        }
        normalization(model.norm, "ln_f");
        return model;
    }

    Gpt llama() {
        const Shape vectors = weight("embed_tokens.weight").shape();
        require("hidden_act", "silu");
        require("rope_scaling", "null");
        require("attention_bias", "false");
        const std::int64_t heads = integer("num_attention_heads");
        const Gpt::Sizes sizes{.words = vectors[0],
                               .context = integer("max_position_embeddings", 2048),
                               .units = integer("hidden_size"),
                               .layers = integer("num_hidden_layers"),
                               .heads = heads,
                               .kv_heads = integer("num_key_value_heads", heads),
                               .hidden = integer("intermediate_size"),
                               .layout = layout_};
        Gpt::Details details(layout_);
        details.eps = number("rms_norm_eps", 1e-6);
        details.rotary_base = number("rope_theta", 10000);
        details.tied = text("tie_word_embeddings", "false") == "true";
        Gpt model(sizes, details);
        set(model.embed.W, "embed_tokens.weight");
        for (std::size_t i = 0; i < model.blocks.size(); ++i) {
            const std::string name = fmt::format("layers.{}.", i);
            TransformerBlock& block = model.blocks[i];
            set(block.norm1.rms->gamma, name + "input_layernorm.weight");
            set(block.attention.q.W, name + "self_attn.q_proj.weight");
            set(block.attention.k.W, name + "self_attn.k_proj.weight");
            set(block.attention.v.W, name + "self_attn.v_proj.weight");
            set(block.attention.out.W, name + "self_attn.o_proj.weight");
            set(block.norm2.rms->gamma, name + "post_attention_layernorm.weight");
            set(block.up.W, name + "mlp.up_proj.weight");
            set(block.down.W, name + "mlp.down_proj.weight");
            set(block.gate->W, name + "mlp.gate_proj.weight");
        }
        set(model.norm.rms->gamma, "norm.weight");
        if (model.head) set(model.head->W, "lm_head.weight");
        return model;
    }

    fs::path config_file_, weights_file_;
    Json config_;
    Gpt::Layout layout_;
    std::map<std::string, Array> weights_;
};

}  // namespace

Gpt load_gpt(const fs::path& folder) { return GptFile(folder).load(); }

}  // namespace catena::models
