// Compares transformers with PyTorch, whose values transformers.py prints. Files that do not fit are errors.
#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include "temporary.hpp"

using namespace catena;
namespace fs = std::filesystem;
namespace F = functions;

namespace {

using Shapes = std::map<std::string, Shape>;

// As draw() in transformers.py.
std::map<std::string, Array> draw(const Shapes& shapes) {
    std::mt19937 engine(1);
    std::map<std::string, Array> arrays;
    for (const auto& [name, shape] : shapes) {
        const bool scale =
            (name.ends_with("weight") || name.ends_with("gamma")) && shape.ndim() == 1;
        std::vector<float> values(static_cast<std::size_t>(shape.size()));
        for (float& value : values) {
            const double drawn = static_cast<double>(engine()) / 2147483648.0 - 1;
            value = static_cast<float>(scale ? 1 + 0.1 * drawn : 0.05 * drawn);
        }
        arrays.emplace(name, Array::from(values, shape));
    }
    return arrays;
}

Shapes gpt2_shapes(std::int64_t words, std::int64_t context, std::int64_t units,
                   std::int64_t layers) {
    Shapes shapes{{"wte.weight", {words, units}},
                  {"wpe.weight", {context, units}},
                  {"ln_f.weight", {units}},
                  {"ln_f.bias", {units}}};
    for (std::int64_t i = 0; i < layers; ++i) {
        const auto add = [&](const char* name, const Shape& shape) {
            const std::string layer = "h." + std::to_string(i) + "." + name;
            shapes.emplace(layer + ".weight", shape);
            shapes.emplace(layer + ".bias", Shape{shape[shape.ndim() - 1]});
        };
        add("ln_1", {units});
        add("attn.c_attn", {units, 3 * units});
        add("attn.c_proj", {units, units});
        add("ln_2", {units});
        add("mlp.c_fc", {units, 4 * units});
        add("mlp.c_proj", {4 * units, units});
    }
    return shapes;
}

// 13 words, 16 units, 2 layers, 4 heads of this size, 2 of them of keys, 24 hidden units; layers whose
// names begin with one of these have a bias
Shapes llama_shapes(const std::vector<std::string>& biases = {}, bool tied = false,
                    std::int64_t size = 4, bool normalized = false) {
    Shapes shapes{{"model.embed_tokens.weight", {13, 16}}, {"model.norm.weight", {16}}};
    if (!tied) shapes.emplace("lm_head.weight", Shape{13, 16});
    for (int i = 0; i < 2; ++i) {
        const auto add = [&](const char* name, const Shape& shape) {
            const std::string layer = "model.layers." + std::to_string(i) + "." + name;
            shapes.emplace(layer + ".weight", shape);
            for (const std::string& start : biases)
                if (std::string_view(name).starts_with(start))
                    shapes.emplace(layer + ".bias", Shape{shape[0]});
        };
        add("input_layernorm", {16});
        add("self_attn.q_proj", {4 * size, 16});
        add("self_attn.k_proj", {2 * size, 16});
        add("self_attn.v_proj", {2 * size, 16});
        add("self_attn.o_proj", {16, 4 * size});
        if (normalized) add("self_attn.q_norm", {size});
        if (normalized) add("self_attn.k_norm", {size});
        add("post_attention_layernorm", {16});
        add("mlp.up_proj", {24, 16});
        add("mlp.gate_proj", {24, 16});
        add("mlp.down_proj", {16, 24});
    }
    return shapes;
}

// The configurations of small models, with more members.
std::string small_gpt2(const std::string& more = "") {
    return R"({"model_type": "gpt2", "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4)" +
           more + "}";
}
std::string small_llama(const std::string& more = "", const std::string& type = "llama") {
    return R"({"model_type": ")" + type + R"(", "hidden_size": 16, "num_hidden_layers": 2,
               "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24,
               "max_position_embeddings": 32)" +
           more + "}";
}

void write(const fs::path& folder, const std::string& config,
           const std::map<std::string, Array>& weights) {
    std::ofstream(folder / "config.json") << config;
    save_arrays(folder / "model.safetensors", weights);
}

// Compares every nth score.
void check(const models::Gpt& model, const Array& x, std::size_t every,
           const std::vector<double>& expected) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    const auto scores = model(as_variable(x)).data().to_vector<float>();
    REQUIRE((scores.size() + every - 1) / every == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        CHECK(scores[i * every] == doctest::Approx(expected[i]).epsilon(1e-4));
}

Array tokens(std::int64_t n, std::int64_t t, std::int64_t step, std::int64_t words) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < n * t; ++i) ids.push_back(i * step % words);
    return Array::from(ids, {n, t});
}

}  // namespace

TEST_CASE("a GPT-2 has PyTorch's scores") {
    const TemporaryFolder folder;
    auto weights = draw(gpt2_shapes(13, 8, 16, 2));
    const std::vector<double> expected{0.067595,  -0.138765, 0.268727,  -0.119534, -0.266959,
                                       -0.045974, 0.030913,  -0.172308, 0.145765,  0.077171};
    write(folder.path, small_gpt2(), weights);
    const auto model = models::load_gpt(folder.path);
    CHECK(model.sizes().words == 13);
    CHECK(model.sizes().context == 8);
    check(model, tokens(2, 6, 7, 13), 17, expected);
    SUBCASE("with the prefix and the buffers of the whole model, in float64") {
        std::map<std::string, Array> named;
        for (const auto& [name, array] : weights)
            named.emplace("transformer." + name, array.astype(Dtype::float64));
        named.emplace("transformer.h.0.attn.bias", Array::ones({1, 1, 8, 8}, Dtype::uint8));
        write(folder.path, small_gpt2(), named);
        check(models::load_gpt(folder.path), tokens(2, 6, 7, 13), 17, expected);
    }
}

TEST_CASE("a Llama has PyTorch's scores") {
    const TemporaryFolder folder;
    write(folder.path, small_llama(), draw(llama_shapes()));
    check(models::load_gpt(folder.path), tokens(2, 6, 7, 13), 17,
          {0.231366, -0.011331, 0.047187, 0.134433, 0.095841, -0.003680, 0.120973, -0.183247,
           0.038856, 0.090674});
}

TEST_CASE("variants of GPT-2 and Llama have PyTorch's scores, also after they were saved") {
    struct Variant {
        std::string config;
        Shapes shapes;
        std::vector<double> expected;
    };
    auto gpt2 = gpt2_shapes(13, 8, 16, 2);
    gpt2["lm_head.weight"] = {13, 16};
    const std::vector<double> of_llama3{0.208927, -0.124138, 0.076835,  0.035609,  0.005047,
                                        0.021040, 0.068044,  -0.212251, -0.047791, -0.031023};
    const std::string llama3 =
        R"("rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 8})";
    const auto all_biases = llama_shapes({"self_attn", "mlp"});
    for (const auto& [config, shapes, expected] : {
             Variant{small_gpt2(R"(, "tie_word_embeddings": false, "activation_function": "gelu",
                                   "scale_attn_weights": false,
                                   "scale_attn_by_inverse_layer_idx": true)"),
                     gpt2,
                     {0.122667, 0.102154, -0.100739, -0.060215, 0.227583, -0.079624, -0.029922,
                      -0.066928, -0.021633, 0.111148}},
             Variant{small_llama(R"(, "attention_bias": true, "mlp_bias": true, "rope_theta": 5,
                                    "rope_parameters": {"rope_theta": 100, )" +
                                 llama3),
                     all_biases, of_llama3},
             Variant{small_llama(R"(, "attention_bias": true, "mlp_bias": true, "rope_theta": 100,
                                    "rope_scaling": {)" +
                                 llama3),
                     all_biases, of_llama3},
             Variant{small_llama(R"(, "mlp_bias": true,
                                    "rope_scaling": {"type": "linear", "factor": 4})"),
                     llama_shapes({"mlp"}),
                     {0.279817, 0.062668, 0.020608, -0.115660, 0.190759, 0.054216, 0.050117,
                      -0.090447, 0.012824, 0.124044}},
             // SmolLM2
             Variant{small_llama(R"(, "tie_word_embeddings": true, "rope_theta": 100000,
                                    "rope_interleaved": false, "is_llama_config": true)"),
                     llama_shapes({}, true),
                     {0.473459, -0.058392, 0.017946, -0.083030, 0.042636, -0.029102, -0.151803,
                      0.049842, -0.052320, -0.113031}},
             Variant{small_llama(R"(, "tie_word_embeddings": true, "rope_theta": 1000000,
                                    "use_sliding_window": false, "sliding_window": 16)",
                                 "qwen2"),
                     llama_shapes({"self_attn.q", "self_attn.k", "self_attn.v"}, true),
                     {0.389729, -0.041509, -0.166393, -0.174914, 0.008622, 0.013499, -0.105205,
                      0.082355, -0.101996, -0.014778}},
             Variant{small_llama(R"(, "rope_theta": 1000000, "head_dim": 6,
                                    "attention_bias": false, "layer_types": ["full_attention",
                                    "full_attention"])",
                                 "qwen3"),
                     llama_shapes({}, false, 6, true),
                     {0.123072, -0.102821, 0.088052, 0.127143, 0.079035, 0.147234, 0.237002,
                      -0.271016, 0.089533, 0.064923}},
         }) {
        CAPTURE(config);
        const TemporaryFolder folder;
        write(folder.path, config, draw(shapes));
        const auto model = models::load_gpt(folder.path);
        check(model, tokens(2, 6, 7, 13), 17, expected);
        std::int64_t size = 0;
        for (const auto& [name, shape] : shapes) size += shape.size();
        CHECK(model.count_parameters() == size);
        models::save_gpt(model, folder.path / "again");
        const auto again = models::load_gpt(folder.path / "again", 0.1);
        check(again, tokens(2, 6, 7, 13), 17, expected);
        CHECK(again.sizes().dropout == 0.1);
        const std::string same = models::config_of(model);
        CHECK(models::config_of(again) == same);
        CHECK(models::config_of(models::make_gpt(same)) == same);
        CHECK(models::make_gpt(same).count_parameters() == size);
        // A cache gives the scores of the whole text.
        const no_backprop_mode no_graph;
        auto cache = model.make_cache(1, 6);
        const Array text = tokens(1, 6, 7, 13);
        (void)model.next_scores(as_variable(F::get_item(text, {0, 0}, {1, 4})), cache);
        const auto last =
            model.next_scores(as_variable(F::get_item(text, {0, 4}, {1, 6})), cache).data();
        const auto all = model(as_variable(text)).data().to_vector<float>();
        for (std::size_t i = 0; i < 13; ++i)
            CHECK(last.to_vector<float>()[i] == doctest::Approx(all[65 + i]).epsilon(1e-4));
        CHECK(again.sizes().context == model.sizes().context);
    }
}

TEST_CASE("a model is saved with Hugging Face's names and loaded from several files") {
    const TemporaryFolder folder;
    for (const bool gpt2 : {true, false}) {
        const auto weights = draw(gpt2 ? gpt2_shapes(13, 8, 16, 2) : llama_shapes());
        write(folder.path, gpt2 ? small_gpt2() : small_llama(), weights);
        const fs::path other = folder.path / (gpt2 ? "a" : "b");
        models::save_gpt(models::load_gpt(folder.path), other);
        const auto saved = load_arrays(other / "model.safetensors");
        CHECK(saved.size() == weights.size());
        CHECK(load_texts(other / "model.safetensors") ==
              std::map<std::string, std::string>{{"format", "pt"}});
        for (const auto& [name, array] : weights) {
            CAPTURE(name);
            const auto found = saved.find(gpt2 ? "transformer." + name : name);
            REQUIRE(found != saved.end());
            CHECK(found->second.to_vector<float>() == array.to_vector<float>());
        }
        std::map<std::string, Array> one, two;
        std::string map;
        for (const auto& [name, array] : saved) {
            const bool first = one.size() <= two.size();
            (first ? one : two).emplace(name, array);
            map += (map.empty() ? "\"" : ", \"") + name + "\": \"" + (first ? "one" : "two") +
                   ".safetensors\"";
        }
        save_arrays(other / "one.safetensors", one);
        save_arrays(other / "two.safetensors", two);
        fs::remove(other / "model.safetensors");
        std::ofstream(other / "model.safetensors.index.json")
            << R"({"weight_map": {)" << map << "}}";
        const Array x = tokens(2, 6, 7, 13);
        const auto scores = models::load_gpt(folder.path)(as_variable(x)).data();
        CHECK(models::load_gpt(other)(as_variable(x)).data().to_vector<float>() ==
              scores.to_vector<float>());
        std::ofstream(other / "model.safetensors.index.json")
            << R"({"weight_map": {"x": "../one.safetensors"}})";
        CHECK(error_of<DataError>([&] { (void)models::load_gpt(other); })
                  .ends_with("index.json: x: expected a file in the folder, got "
                             "\"../one.safetensors\""));
    }
    models::Gpt::Details details(models::Gpt::Layout::gpt2);
    details.bias = false;
    const models::Gpt::Sizes sizes{.words = 3, .units = 8, .layers = 1, .heads = 2};
    CHECK(error_of<InvalidError>([&] {
              models::save_gpt(models::Gpt(sizes, details), folder.path / "c");
          }) == "[config_of] model: expected the details of layout gpt2, got others");
}

TEST_CASE("load_gpt() takes no random numbers, and does not change those of later models") {
    const TemporaryFolder folder;
    write(folder.path, small_gpt2(), draw(gpt2_shapes(13, 8, 16, 2)));
    const auto next = [] { return random::normal({4}).to_vector<float>(); };
    seed(3);
    const auto expected = next();
    seed(3);
    (void)models::load_gpt(folder.path);
    CHECK(next() == expected);
    const auto weights = models::make_gpt(small_gpt2(R"(, "vocab_size": 13)")).embed.W.data();
    CHECK(weights.to_vector<float>()[0] != 0);
}

TEST_CASE("a GPT-2 of 124 million parameters has PyTorch's scores") {
    const TemporaryFolder folder;
    write(folder.path, R"({"model_type": "gpt2"})", draw(gpt2_shapes(50257, 1024, 768, 12)));
    const auto model = models::load_gpt(folder.path);
    CHECK(model.count_parameters() == 124439808);
    check(model, tokens(1, 8, 5003, 50257), 40009,
          {0.167773, 0.607851, -0.116303, 0.546847, 0.054732, 0.247259, 2.359613, 0.737402,
           -0.431375, -0.890064, 0.466910});
}

TEST_CASE("a vision transformer has PyTorch's scores") {
    models::VisionTransformer model(
        5, {.image = 11, .patch = 3, .units = 16, .layers = 2, .heads = 4});
    Shapes shapes;
    for (const auto& p : model.collect_parameters()) shapes.emplace(p.name, p.variable.shape());
    const auto weights = draw(shapes);
    for (const auto& p : model.collect_parameters())
        p.variable.data().copy_from(weights.at(p.name));
    std::vector<float> x;
    for (int i = 0; i < 2 * 3 * 11 * 11; ++i)
        x.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);  // NOLINT: as there
    const no_backprop_mode no_graph;
    const auto scores =
        model(as_variable(Array::from(x, {2, 3, 11, 11}))).data().to_vector<float>();
    const std::vector<double> expected{-0.010135, 0.127438, 0.019168, 0.040365, -0.192155,
                                       -0.011725, 0.125448, 0.015029, 0.037984, -0.192449};
    REQUIRE(scores.size() == expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i)
        CHECK(scores[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("load_gpt() reports what does not fit") {
    const TemporaryFolder folder;
    const auto weights = draw(gpt2_shapes(13, 8, 16, 2));
    const auto message = [&](const std::string& config,
                             const std::map<std::string, Array>& arrays) {
        write(folder.path, config, arrays);
        const auto text = error_of<DataError>([&] { (void)models::load_gpt(folder.path); });
        return text.substr(text.rfind('/') + 1);
    };
    CHECK_THROWS_AS((void)models::load_gpt(folder.path), DataError);  // no file
    CHECK_THROWS_AS((void)models::make_gpt("{"), DataError);
    CHECK_THROWS_AS((void)models::make_gpt(small_gpt2()), DataError);  // no vocab_size
    CHECK(message("[]", weights) == "config.json: file: expected a JSON object, got a text");
    CHECK(message("{}", weights) ==
          "config.json: model_type: expected gpt2, llama, qwen2 or qwen3, got none");
    // A model of this size would not fit into memory.
    CHECK(message(R"({"model_type": "gpt2", "n_embd": 16, "n_head": 4, "n_layer": 1000000})",
                  weights) ==
          "model.safetensors: arrays: expected those of 1000000 layers, got 28 arrays");
    CHECK(message(R"({"model_type": "gpt2", "n_embd": 16, "n_head": 4, "n_layer": 2,
                      "n_positions": 8, "n_inner": 1000000000})",
                  weights) ==
          "model.safetensors: h.0.mlp.c_fc.weight: expected (16, 1000000000), got (16, 64)");
    CHECK(message(R"({"model_type": "gpt2", "n_embd": 16, "n_head": 3})", weights) ==
          "config.json: n_head: expected a divisor of the 16 units, got 3");
    CHECK(message(R"({"model_type": "gpt2", "n_head": "four"})", weights) ==
          "config.json: n_head: expected a number, got \"four\"");
    CHECK(message(R"({"model_type": "gpt2", "n_layer": 1.5})", weights) ==
          "config.json: n_layer: expected an integer from 1 to 2^30, got 1.5");
    CHECK(message(R"({"model_type": "gpt2", "activation_function": "relu"})", weights) ==
          "config.json: activation_function: expected gelu_new, gelu_pytorch_tanh or gelu, got "
          "\"relu\"");
    CHECK(message(R"({"model_type": "gpt2"})", weights) ==
          "model.safetensors: wte.weight: expected (13, 768), got (13, 16)");
    auto fewer = weights;
    fewer.erase("h.1.ln_2.bias");
    CHECK(message(small_gpt2(), fewer) ==
          "model.safetensors: expected an array h.1.ln_2.bias, got none");
    auto other = weights;
    other["h.0.attn.c_attn.weight"] = Array::zeros({16, 40});
    CHECK(message(small_gpt2(), other) ==
          "model.safetensors: h.0.attn.c_attn.weight: expected (16, 48), got (16, 40)");
    auto more = weights;
    more["h.0.attn.q_norm.weight"] = Array::ones({4});
    CHECK(message(small_gpt2(), more) ==
          "model.safetensors: arrays: expected those that config.json describes, got also "
          "h.0.attn.q_norm.weight");
    CHECK(message(small_gpt2(R"(, "scale_attn_weights": 1)"), weights) ==
          "config.json: scale_attn_weights: expected true or false, got 1");
    CHECK(message(small_gpt2(R"(, "add_cross_attention": true)"), weights) ==
          "config.json: add_cross_attention: expected false, got true");
    CHECK(message(small_gpt2(R"(, "tie_word_embeddings": false)"), weights) ==
          "model.safetensors: expected an array lm_head.weight, got none");
    const auto llama = [&](const std::string& more_config) {
        return message(small_llama(", " + more_config), draw(llama_shapes()));
    };
    CHECK(llama(R"("rope_scaling": {"factor": 2})") ==
          "config.json: type: expected default, linear or llama3, got none");
    CHECK(llama(R"("rope_parameters": {"rope_type": "yarn", "factor": 2})") ==
          "config.json: rope_type: expected default, linear or llama3, got \"yarn\"");
    CHECK(llama(R"("rope_parameters": {"partial_rotary_factor": 0.5})") ==
          "config.json: partial_rotary_factor: expected 1, got 0.5");
    CHECK(llama(R"("rope_scaling": 3)") == "config.json: rope_scaling: expected an object, got 3");
    CHECK(llama(R"("head_dim": 8)") ==
          "model.safetensors: layers.0.self_attn.q_proj.weight: expected (32, 16), got (16, 16)");
    CHECK(llama(R"("use_sliding_window": true)") ==
          "config.json: use_sliding_window: expected false, got true");
    CHECK(llama(R"("layer_types": ["full_attention", "sliding_attention"])") ==
          "config.json: layer_types: expected \"full_attention\" only, got "
          "[\"full_attention\",\"sliding_attention\"]");
    CHECK(llama(R"("rope_interleaved": true)") ==
          "config.json: rope_interleaved: expected false, got true");
    CHECK(llama(R"("hidden_act": "gelu")") ==
          "config.json: hidden_act: expected silu, got \"gelu\"");
    CHECK(llama(R"("mlp_bias": true)") ==
          "model.safetensors: expected an array layers.0.mlp.up_proj.bias, got none");
}
