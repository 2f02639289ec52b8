// Loads and saves Gpt in the format of Hugging Face.
#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/models/gpt.hpp>
#include <catena/read_file.hpp>
#include <catena/write_file.hpp>

#include <cmath>

#include "parse_json.hpp"

namespace catena::models {
namespace F = functions;
namespace {

using GptJson = nlohmann::json;
namespace fs = std::filesystem;

using Norm = TransformerBlock::Norm;
using Activation = TransformerBlock::Activation;

constexpr const char* head_name = "lm_head.weight";

struct GptPlan {
    Gpt::Sizes sizes;
    Gpt::Details details;
    bool qkv_bias = true, out_bias = true, mlp_bias = true;
};

using Parameters = std::map<std::string, Variable>;

Parameters parameters_of(const Gpt& model) {
    Parameters all;
    for (const auto& [name, variable] : model.collect_parameters()) all.emplace(name, variable);
    return all;
}

// An array of the file has parameters of one shape side by side, in the last axis.
struct StoredArray {
    std::string name;  // without the prefix of the whole model
    std::vector<std::string> parts;
    Shape part;               // the shape of each
    bool transposed = false;  // the file has matrices (in, out)

    Shape shape() const {
        Shape all = part;
        if (transposed) std::swap(all[0], all[1]);
        all[all.ndim() - 1] *= std::ssize(parts);
        return all;
    }
    Array join(const Parameters& parameters) const {
        std::vector<Array> pieces;
        for (const std::string& name_of_part : parts) {
            const Array values = parameters.at(name_of_part).data();
            pieces.push_back(transposed ? F::transpose(values, {1, 0}) : values);
        }
        return pieces.size() == 1 ? pieces[0] : F::concat(pieces, part.ndim() - 1);
    }
    void split(const Array& all, const Parameters& parameters) const {
        const auto pieces = F::split_axis(all, std::ssize(parts), part.ndim() - 1);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const Array values = parameters.at(parts[i]).data();
            values.copy_from(
                (transposed ? F::transpose(pieces[i], {1, 0}) : pieces[i]).astype(values.dtype()));
        }
    }
};

// The contents of a file, under the names of the model's parameters.
std::vector<StoredArray> stored_arrays(const GptPlan& plan) {
    const Gpt::Sizes& sizes = plan.sizes;
    const bool gpt2 = sizes.layout == Gpt::Layout::gpt2;
    const std::int64_t units = sizes.units, hidden = sizes.hidden;
    const std::int64_t head_size = sizes.head_size > 0 ? sizes.head_size : units / sizes.heads;
    const std::int64_t wide = head_size * sizes.heads;
    const std::int64_t narrow = sizes.kv_heads > 0 ? head_size * sizes.kv_heads : wide;
    std::vector<StoredArray> all;
    std::string there, here;  // prefixes of a layer
    const auto linear = [&](const std::string& name, const std::vector<std::string>& layers,
                            std::int64_t in, std::int64_t out, bool bias) {
        std::vector<std::string> weights, biases;
        for (const std::string& layer : layers) {
            weights.push_back(here + layer + "/W");
            biases.push_back(here + layer + "/b");
        }
        all.push_back({there + name + ".weight", weights, {out, in}, gpt2});
        if (bias) all.push_back({there + name + ".bias", biases, {out}});
    };
    const auto scale = [&](const std::string& name, const std::string& own, std::int64_t size) {
        all.push_back({there + name + ".weight", {here + own + "/gamma"}, {size}});
    };
    const auto normalization = [&](const std::string& name, const std::string& own) {
        scale(name, own, units);
        if (plan.details.norm == Norm::layer)
            all.push_back({there + name + ".bias", {here + own + "/beta"}, {units}});
    };
    all.push_back({gpt2 ? "wte.weight" : "embed_tokens.weight", {"embed/W"}, {sizes.words, units}});
    if (gpt2) all.push_back({"wpe.weight", {"position"}, {sizes.context, units}});
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
        there = fmt::format("{}.{}.", gpt2 ? "h" : "layers", i);
        here = fmt::format("block{}/", i);
        normalization(gpt2 ? "ln_1" : "input_layernorm", "norm1");
        if (gpt2) {
            linear("attn.c_attn", {"attention/q", "attention/k", "attention/v"}, units, wide, true);
        } else {
            linear("self_attn.q_proj", {"attention/q"}, units, wide, plan.qkv_bias);
            linear("self_attn.k_proj", {"attention/k"}, units, narrow, plan.qkv_bias);
            linear("self_attn.v_proj", {"attention/v"}, units, narrow, plan.qkv_bias);
        }
        if (plan.details.qk_norm) {
            scale("self_attn.q_norm", "attention/q_norm", head_size);
            scale("self_attn.k_norm", "attention/k_norm", head_size);
        }
        linear(gpt2 ? "attn.c_proj" : "self_attn.o_proj", {"attention/out"}, wide, units,
               plan.out_bias);
        normalization(gpt2 ? "ln_2" : "post_attention_layernorm", "norm2");
        linear(gpt2 ? "mlp.c_fc" : "mlp.up_proj", {"up"}, units, hidden, plan.mlp_bias);
        linear(gpt2 ? "mlp.c_proj" : "mlp.down_proj", {"down"}, hidden, units, plan.mlp_bias);
        if (!gpt2) linear("mlp.gate_proj", {"gate"}, units, hidden, plan.mlp_bias);
    }
    there = here = "";
    normalization(gpt2 ? "ln_f" : "norm", "norm");
    if (!plan.details.tied) all.push_back({head_name, {"head/W"}, {sizes.words, units}});
    return all;
}

std::string_view prefix_of(Gpt::Layout layout) {
    return layout == Gpt::Layout::gpt2 ? "transformer." : "model.";
}

[[noreturn]] void bad_gpt(const fs::path& file, std::string_view what, std::string_view expected,
                          std::string_view got) {
    fail<DataError>("[load_gpt] {}: {}: expected {}, got {}", file.string(), what, expected, got);
}

GptJson read_object(const fs::path& file) {
    GptJson json = parse_json(read_regular("load_gpt", file, "a JSON object"));
    const std::string kind = json.is_object() ? "" : file_kind(file);
    if (!json.is_object())
        bad_gpt(file, "file", "a JSON object", kind.empty() ? "something else" : kind);
    return json;
}

// The values of config.json, or of an object in it. null means that a value is missing.
class Settings {
public:
    Settings(fs::path file, GptJson json) : file_(std::move(file)), json_(std::move(json)) {
        if (!json_.is_object()) bad_gpt(file_, "file", "a JSON object", "something else");
    }

    bool has(const char* name) const { return json_.contains(name) && !json_.at(name).is_null(); }
    Settings object(const char* name) const {
        Settings inner = *this;
        inner.json_ = has(name) ? json_.at(name) : GptJson::object();
        if (!inner.json_.is_object()) refuse(name, "an object");
        return inner;
    }
    std::string text(const char* name, const std::string& otherwise = "none") const {
        if (!has(name)) return otherwise;
        return json_.at(name).is_string() ? json_.at(name).get<std::string>()
                                          : json_.at(name).dump();
    }
    double number(const char* name, double otherwise) const {
        if (!has(name)) return otherwise;
        if (!json_.at(name).is_number()) refuse(name, "a number");
        return json_.at(name).get<double>();
    }
    std::int64_t integer(const char* name, std::int64_t otherwise = 0) const {
        const double value = number(name, static_cast<double>(otherwise));
        if (!(value >= 1 && value <= 0x1p30 && value == std::floor(value)))
            refuse(name, "an integer from 1 to 2^30");
        return static_cast<std::int64_t>(value);
    }
    bool flag(const char* name, bool otherwise) const {
        if (!has(name)) return otherwise;
        if (!json_.at(name).is_boolean()) refuse(name, "true or false");
        return json_.at(name).get<bool>();
    }
    // Throws unless the value is missing or this one.
    void require(const char* name, const GptJson& value) const {
        if (has(name) && json_.at(name) != value) refuse(name, value.dump());
    }
    // Throws unless the value is missing or an array of this value.
    void require_all(const char* name, const GptJson& value) const {
        if (!has(name)) return;
        const GptJson& list = json_.at(name);
        if (!list.is_array() ||
            !std::ranges::all_of(list, [&](const auto& v) { return v == value; }))
            refuse(name, value.dump() + " only");
    }
    [[noreturn]] void refuse(const char* name, std::string_view expected) const {
        bad_gpt(file_, name, expected, has(name) ? json_.at(name).dump() : "none");
    }

private:
    fs::path file_;
    GptJson json_;
};

// All arrays of a folder, in host memory.
class Weights {
public:
    explicit Weights(const fs::path& folder) : file_(folder / "model.safetensors") {
        const fs::path index = folder / "model.safetensors.index.json";
        if (fs::exists(file_) || !fs::exists(index)) {
            arrays_ = load_arrays(file_, cuda::host());
            return;
        }
        file_ = index;
        const GptJson json = read_object(index);
        const auto map = json.find("weight_map");
        if (map == json.end() || !map->is_object())
            bad_gpt(index, "weight_map", "an object of names and files", "something else");
        std::set<std::string> files;
        for (const auto& [name, file] : map->items()) {
            const fs::path plain = file.is_string() ? file.get<std::string>() : "";
            if (plain.empty() || plain.filename() != plain)
                bad_gpt(index, name, "a file in the folder", file.dump());
            files.insert(plain.string());
        }
        for (const std::string& file : files)
            arrays_.merge(load_arrays(folder / file, cuda::host()));
    }

    // The array of a name, with or without the prefix.
    const Array& get(const std::string& name, std::string_view prefix) {
        for (const std::string& full : {name, std::string(prefix) + name})
            if (const auto found = arrays_.find(full); found != arrays_.end()) {
                used_.insert(full);
                return found->second;
            }
        fail<DataError>("[load_gpt] {}: expected an array {}, got none", file_.string(), name);
    }
    const Array& get(const StoredArray& stored, std::string_view prefix) {
        const Array& found = get(stored.name, prefix);
        if (const Shape shape = stored.shape(); found.shape() != shape)
            bad_gpt(file_, stored.name, to_string(shape), to_string(found.shape()));
        return found;
    }
    // Throws unless there are as many arrays.
    void require_count(std::int64_t n) const {
        if (n > std::ssize(arrays_))
            bad_gpt(file_, "arrays", fmt::format("those of {} layers", n),
                    fmt::format("{} arrays", arrays_.size()));
    }
    // Throws if there are other arrays, besides the scores of a tied model and old files' constants.
    void require_used() const {
        for (const auto& [name, array] : arrays_) {
            const bool constant = std::ranges::any_of(
                std::initializer_list<std::string_view>{".attn.bias", ".attn.masked_bias",
                                                        ".rotary_emb.inv_freq"},
                [&](std::string_view end) { return name.ends_with(end); });
            if (!constant && name != head_name && !used_.contains(name))
                bad_gpt(file_, "arrays", "those that config.json describes", "also " + name);
        }
    }

private:
    fs::path file_;
    std::map<std::string, Array> arrays_;
    std::set<std::string> used_;
};

GptPlan plan_gpt2(const Settings& config) {
    GptPlan plan{{.words = 0,
                  .context = config.integer("n_positions", 1024),
                  .units = config.integer("n_embd", 768),
                  .layers = config.integer("n_layer", 12),
                  .heads = config.integer("n_head", 12),
                  .hidden = config.integer("n_inner", 4 * config.integer("n_embd", 768)),
                  .layout = Gpt::Layout::gpt2},
                 Gpt::Details(Gpt::Layout::gpt2)};
    const std::string activation = config.text("activation_function", "gelu_new");
    if (activation == "gelu") plan.details.activation = Activation::gelu;
    else if (activation != "gelu_new" && activation != "gelu_pytorch_tanh")
        config.refuse("activation_function", "gelu_new, gelu_pytorch_tanh or gelu");
    config.require("add_cross_attention", false);
    plan.details.eps = config.number("layer_norm_epsilon", 1e-5);
    plan.details.tied = config.flag("tie_word_embeddings", true);
    return plan;
}

// Llama, Qwen 2 and Qwen 3.
GptPlan plan_llama(const Settings& config, const std::string& model) {
    const std::int64_t heads = config.integer("num_attention_heads");
    GptPlan plan{
        {.words = 0,
         .context = config.integer("max_position_embeddings", model == "llama" ? 2048 : 32768),
         .units = config.integer("hidden_size"),
         .layers = config.integer("num_hidden_layers"),
         .heads = heads,
         .kv_heads = config.integer("num_key_value_heads", model == "llama" ? heads : 32),
         .hidden = config.integer("intermediate_size"),
         .layout = Gpt::Layout::llama},
        Gpt::Details(Gpt::Layout::llama)};
    Gpt::Details& details = plan.details;
    if (const auto name = config.text("hidden_act", "silu"); name != "silu" && name != "swish")
        config.refuse("hidden_act", "silu");
    if (model == "qwen3") plan.sizes.head_size = config.integer("head_dim", 128);
    else if (config.has("head_dim")) plan.sizes.head_size = config.integer("head_dim");
    // A head of the usual size is not stored, so that Sizes are those of other models.
    if (plan.sizes.head_size * heads == plan.sizes.units) plan.sizes.head_size = 0;
    plan.qkv_bias = model == "qwen2" || config.flag("attention_bias", false);
    plan.out_bias = model != "qwen2" && plan.qkv_bias;
    plan.mlp_bias = model == "llama" && config.flag("mlp_bias", false);
    details.bias = plan.qkv_bias || plan.mlp_bias;
    details.qk_norm = model == "qwen3";
    details.eps = config.number("rms_norm_eps", 1e-6);
    details.tied = config.flag("tie_word_embeddings", false);
    config.require("rope_interleaved", false);
    config.require("use_sliding_window", false);
    config.require_all("layer_types", "full_attention");

    const Settings rope =
        config.object(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
    for (const Settings& one : {config, rope}) one.require("partial_rotary_factor", 1);
    details.rotary_base = rope.number("rope_theta", config.number("rope_theta", 10000));
    const char* const key = rope.has("rope_type") ? "rope_type" : "type";
    const std::string scaled = rope.text(key, rope.has("factor") ? "none" : "default");
    auto& scaling = details.rotary_scaling;
    if (scaled == "linear" || scaled == "llama3") {
        scaling.factor = rope.number("factor", 0);
    } else if (scaled != "default") {
        rope.refuse(key, "default, linear or llama3");
    }
    if (scaled == "llama3")
        scaling = {scaling.factor, rope.number("low_freq_factor", 0),
                   rope.number("high_freq_factor", 0),
                   rope.number("original_max_position_embeddings", 0)};
    return plan;
}

GptPlan plan_of(const Settings& config, double dropout) {
    const std::string type = config.text("model_type");
    if (type != "gpt2" && type != "llama" && type != "qwen2" && type != "qwen3")
        config.refuse("model_type", "gpt2, llama, qwen2 or qwen3");
    GptPlan plan = type == "gpt2" ? plan_gpt2(config) : plan_llama(config, type);
    if (plan.sizes.head_size == 0 && plan.sizes.units % plan.sizes.heads != 0)
        config.refuse(type == "gpt2" ? "n_head" : "num_attention_heads",
                      fmt::format("a divisor of the {} units", plan.sizes.units));
    plan.sizes.dropout = dropout;
    return plan;
}

Gpt make_planned(const GptPlan& plan) {
    Gpt model(plan.sizes, plan.details);
    for (TransformerBlock& block : model.blocks) {
        auto& attention = block.attention;
        if (!plan.qkv_bias)
            for (auto* layer : {&attention.q, &attention.k, &attention.v}) layer->b = {};
        if (!plan.out_bias) attention.out.b = {};
        if (!plan.mlp_bias) {
            for (links::Linear* layer : {&block.up, &block.down}) layer->b = {};
            if (block.gate) block.gate->b = {};
        }
    }
    return model;
}

}  // namespace

Gpt make_gpt(std::string_view config, double dropout) {
    const Settings settings("config.json", parse_json(config));
    GptPlan plan = plan_of(settings, dropout);
    plan.sizes.words = settings.integer("vocab_size");
    return make_planned(plan);
}

Gpt load_gpt(const fs::path& folder, double dropout) {
    const Settings config(folder / "config.json", read_object(folder / "config.json"));
    GptPlan plan = plan_of(config, dropout);
    Weights weights(folder);
    const bool gpt2 = plan.sizes.layout == Gpt::Layout::gpt2;
    const std::string_view prefix = prefix_of(plan.sizes.layout);
    plan.sizes.words = weights.get(gpt2 ? "wte.weight" : "embed_tokens.weight", prefix).shape()[0];
    // Compares before the model is made: a configuration may ask for more memory than there is.
    weights.require_count(plan.sizes.layers);
    const std::vector<StoredArray> stored = stored_arrays(plan);
    for (const StoredArray& one : stored) (void)weights.get(one, prefix);
    weights.require_used();
    const initializers::no_random_values loading;
    Gpt model = make_planned(plan);
    const Parameters parameters = parameters_of(model);
    for (const StoredArray& one : stored) one.split(weights.get(one, prefix), parameters);
    // Gpt divides scores by sqrt(width); another divisor is multiplied into the weights of queries.
    const auto width = static_cast<double>(plan.sizes.units / plan.sizes.heads);
    const bool by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
    for (std::size_t i = 0; gpt2 && i < model.blocks.size(); ++i) {
        double factor = config.flag("scale_attn_weights", true) ? 1 : std::sqrt(width);
        if (by_layer) factor /= static_cast<double>(i + 1);
        const links::Linear& q = model.blocks[i].attention.q;
        for (Array values : {q.W.data(), q.b.data()}) values *= factor;
    }
    return model;
}

std::vector<std::int32_t> load_end_tokens(const fs::path& folder) {
    for (const char* name : {"generation_config.json", "config.json"}) {
        if (!fs::exists(folder / name)) continue;
        GptJson ids = read_object(folder / name).value("eos_token_id", GptJson());
        if (ids.is_null()) continue;
        if (!ids.is_array()) ids = GptJson::array({ids});
        std::vector<std::int32_t> result;
        for (const GptJson& id : ids) {
            if (!id.is_number_integer() || id < 0 || id > 0x7fffffff)
                bad_gpt(folder / name, "eos_token_id", "ids of tokens", ids.dump());
            result.push_back(id.get<std::int32_t>());
        }
        return result;
    }
    return {};
}

std::string config_of(const Gpt& model) {
    const Gpt::Sizes& sizes = model.sizes();
    const Gpt::Details& details = model.details();
    const bool gpt2 = sizes.layout == Gpt::Layout::gpt2;
    const std::int64_t kv_heads = sizes.kv_heads > 0 ? sizes.kv_heads : sizes.heads;
    const bool as_gpt2 = details.norm == Norm::layer && details.learned_positions &&
                         details.rotary_base == 0 && details.bias && kv_heads == sizes.heads &&
                         details.activation != Activation::swiglu;
    const bool as_llama = details.norm == Norm::rms && !details.learned_positions &&
                          details.rotary_base != 0 && details.activation == Activation::swiglu;
    // Qwen 2 has biases of queries, keys and values only; Qwen 3 normalizes queries and keys.
    const auto& [q_bias, out_bias, mlp_bias] =
        std::array{static_cast<bool>(model.blocks[0].attention.q.b),
                   static_cast<bool>(model.blocks[0].attention.out.b),
                   static_cast<bool>(model.blocks[0].up.b)};
    const bool qwen2 = q_bias && !out_bias;
    const char* const type = details.qk_norm ? "qwen3" : qwen2 ? "qwen2" : "llama";
    const bool known =
        type == std::string_view("llama") || (!mlp_bias && !(qwen2 && details.qk_norm));
    if (!(gpt2 ? as_gpt2 : as_llama && known))
        fail<InvalidError>("[config_of] model: expected the details of layout {}, got others",
                           to_string(sizes.layout));
    const TransformerBlock& block = model.blocks[0];
    const std::int64_t hidden = block.up.W.shape()[0];
    const char* const architecture = gpt2              ? "GPT2LMHeadModel"
                                     : details.qk_norm ? "Qwen3ForCausalLM"
                                     : qwen2           ? "Qwen2ForCausalLM"
                                                       : "LlamaForCausalLM";
    GptJson config{{"model_type", gpt2 ? "gpt2" : type},
                   {"architectures", {architecture}},
                   {"vocab_size", sizes.words},
                   {"tie_word_embeddings", details.tied}};
    if (gpt2) {
        config.update({{"n_positions", sizes.context},
                       {"n_embd", sizes.units},
                       {"n_layer", sizes.layers},
                       {"n_head", sizes.heads},
                       {"n_inner", hidden},
                       {"layer_norm_epsilon", details.eps},
                       {"activation_function",
                        details.activation == Activation::gelu ? "gelu" : "gelu_new"}});
    } else {
        const auto& [factor, low, high, context] = details.rotary_scaling;
        GptJson scaling;
        if (details.rotary_scaling != links::RotaryScaling())
            scaling = {{"rope_type", context > 0 ? "llama3" : "linear"}, {"factor", factor}};
        if (context > 0)
            scaling.update({{"low_freq_factor", low},
                            {"high_freq_factor", high},
                            {"original_max_position_embeddings", std::llround(context)}});
        config.update(
            {{"max_position_embeddings", sizes.context},
             {"hidden_size", sizes.units},
             {"num_hidden_layers", sizes.layers},
             {"num_attention_heads", sizes.heads},
             {"num_key_value_heads", kv_heads},
             {"intermediate_size", hidden},
             {"hidden_act", "silu"},
             {"rms_norm_eps", details.eps},
             {"head_dim", sizes.head_size > 0 ? sizes.head_size : sizes.units / sizes.heads},
             {"attention_bias", q_bias},
             {"mlp_bias", mlp_bias},
             {"rope_theta", details.rotary_base},
             {"rope_scaling", scaling}});
    }
    return config.dump(2) + "\n";
}

void save_gpt(const Gpt& model, const fs::path& folder) {
    const std::string config = config_of(model);
    std::map<std::string, Array> arrays;
    GptPlan plan = plan_of(Settings("config.json", parse_json(config)), 0);
    plan.sizes.words = model.sizes().words;
    const Parameters parameters = parameters_of(model);
    for (const StoredArray& stored : stored_arrays(plan)) {
        const bool whole = stored.name == head_name;
        arrays.emplace(std::string(whole ? "" : prefix_of(model.sizes().layout)) + stored.name,
                       stored.join(parameters));
    }
    fs::create_directories(folder);
    // Older versions of Transformers refuse a file whose metadata names no framework.
    save_arrays(folder / "model.safetensors", arrays, {{"format", "pt"}});
    write_file(folder / "config.json", config);
}

}  // namespace catena::models
