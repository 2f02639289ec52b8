// Transformers against PyTorch: transformers.py prints the numbers; and files that do not fit.
#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include "temporary.hpp"

using namespace catena;
namespace fs = std::filesystem;

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

Shapes
llama_shapes() {  // 13 words, 16 units, 2 layers, 4 heads, 2 of them of keys, 24 hidden units
    Shapes shapes{{"model.embed_tokens.weight", {13, 16}},
                  {"model.norm.weight", {16}},
                  {"lm_head.weight", {13, 16}}};
    for (int i = 0; i < 2; ++i) {
        const auto add = [&](const char* name, const Shape& shape) {
            shapes.emplace("model.layers." + std::to_string(i) + "." + name + ".weight", shape);
        };
        add("input_layernorm", {16});
        add("self_attn.q_proj", {16, 16});
        add("self_attn.k_proj", {8, 16});
        add("self_attn.v_proj", {8, 16});
        add("self_attn.o_proj", {16, 16});
        add("post_attention_layernorm", {16});
        add("mlp.up_proj", {24, 16});
        add("mlp.gate_proj", {24, 16});
        add("mlp.down_proj", {16, 24});
    }
    return shapes;
}

constexpr const char* small_gpt2 =
    R"({"model_type": "gpt2", "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 4})";
constexpr const char* small_llama =
    R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 24, "max_position_embeddings": 32})";

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
    write(folder.path, small_gpt2, weights);
    const auto model = models::load_gpt(folder.path);
    CHECK(model.sizes().words == 13);
    CHECK(model.sizes().context == 8);
    check(model, tokens(2, 6, 7, 13), 17, expected);
    SUBCASE("with the prefix and the buffers of the whole model, in float64") {
        std::map<std::string, Array> named;
        for (const auto& [name, array] : weights)
            named.emplace("transformer." + name, array.astype(Dtype::float64));
        named.emplace("transformer.h.0.attn.bias", Array::ones({1, 1, 8, 8}, Dtype::uint8));
        write(folder.path, small_gpt2, named);
        check(models::load_gpt(folder.path), tokens(2, 6, 7, 13), 17, expected);
    }
}

TEST_CASE("a Llama has PyTorch's scores") {
    const TemporaryFolder folder;
    write(folder.path, small_llama, draw(llama_shapes()));
    check(models::load_gpt(folder.path), tokens(2, 6, 7, 13), 17,
          {0.231366, -0.011331, 0.047187, 0.134433, 0.095841, -0.003680, 0.120973, -0.183247,
           0.038856, 0.090674});
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
    CHECK(message("[]", weights) ==
          "config.json: file: expected a JSON object, got something else");
    CHECK(message("{}", weights) == "config.json: model_type: expected gpt2 or llama, got none");
    CHECK(message(R"({"model_type": "gpt2", "n_head": "four"})", weights) ==
          "config.json: n_head: expected a number, got \"four\"");
    CHECK(message(R"({"model_type": "gpt2", "n_layer": 1.5})", weights) ==
          "config.json: n_layer: expected an integer from 1 to 2^30, got 1.5");
    CHECK(message(R"({"model_type": "gpt2", "activation_function": "relu"})", weights) ==
          "config.json: activation_function: expected gelu_new, got relu");
    CHECK(message(R"({"model_type": "gpt2"})", weights) ==
          "model.safetensors: wte.weight: expected (13, 768), got (13, 16)");
    auto fewer = weights;
    fewer.erase("h.1.ln_2.bias");
    CHECK(message(small_gpt2, fewer) ==
          "model.safetensors: expected an array h.1.ln_2.bias, got none");
    auto other = weights;
    other["h.0.attn.c_attn.weight"] = Array::zeros({16, 40});
    CHECK(message(small_gpt2, other) ==
          "model.safetensors: h.0.attn.c_attn.weight: expected (16, 48), got (16, 40)");
    CHECK(message(R"({"model_type": "llama", "rope_scaling": {"factor": 2}})",
                  draw(llama_shapes())) ==
          "config.json: rope_scaling: expected null, got {\"factor\":2}");
}
