// Gpt: a transformer that predicts the next token.
#pragma once

#include <catena/models/text_generation.hpp>
#include <catena/models/transformer.hpp>

#include <filesystem>

namespace catena::models {

// Vectors of tokens and positions, causal TransformerBlocks, and scores for the next token. Dropout
// in training. The layouts are those of GPT-2 (Radford and others, "Language Models are
// Unsupervised Multitask Learners", 2019) and Llama (Touvron and others, 2023).
class Gpt : public Chain {
public:
    enum class Layout : std::uint8_t {
        gpt2,   // learned positions, layer normalization, GELU (tanh), biases, tied vectors
        llama,  // rotary positions, RMS normalization, SwiGLU, no biases, scores of their own
    };
    struct Sizes {
        std::int64_t words;          // the vocabulary
        std::int64_t context = 256;  // the longest text, in tokens
        std::int64_t units = 256;
        std::int64_t layers = 4;
        std::int64_t heads = 4;
        std::int64_t kv_heads = 0;  // heads of keys and values, which heads share; 0: heads
        std::int64_t hidden = 0;    // units of the MLP; 0: 4 units, or 8/3 units in Llama
        Layout layout = Layout::gpt2;
        double dropout = 0;
    };
    // Choices that the layout makes, and that may also be made one by one.
    struct Details {
        explicit Details(Layout layout);

        TransformerBlock::Norm norm;
        TransformerBlock::Activation activation;
        bool learned_positions;
        double rotary_base;  // 0: positions are not rotary
        functions::RotaryScaling rotary_scaling;
        bool bias;          // of linear layers
        bool tied;          // the scores use the vectors of tokens as weights
        double eps = 1e-5;  // of the normalization
    };

    // Throws ShapeError for sizes below 1, the errors of TransformerBlock, and InvalidError unless
    // 0 <= dropout < 1.
    explicit Gpt(const Sizes& sizes) : Gpt(sizes, Details(sizes.layout)) {}
    Gpt(const Sizes& sizes, const Details& details);

    // Scores (N, T, words) of the token after each of x (N, T), int32 or int64, where T <= context.
    // Throws ShapeError if x does not fit.
    Variable operator()(const Variable& x) const override;
    // mask, lengths: those of MultiHeadAttention, for every block.
    Variable operator()(const Variable& x, const Variable& mask,
                        const Variable& lengths = {}) const;
    // The mean cross entropy of the tokens t (N, T) that follow those of x.
    Variable loss(const Variable& x, const Variable& t) const;

    // The keys and values of earlier tokens, for each block, with places for so many tokens of n
    // texts.
    using Cache = std::vector<TransformerBlock::Cache>;
    Cache make_cache(std::int64_t n, std::int64_t places) const;
    // Reads x (N, T), which follows the tokens in the cache, and returns the scores (N, words) of
    // the next one. Throws ShapeError if the cache has not T more places.
    Variable next_scores(const Variable& x, Cache& cache) const;

    // Generates text: see TextGenerator. When `context` tokens are read, it goes on from the last
    // half.
    std::unique_ptr<NextToken> next_token() const;

    void visit(Visitor& visitor) override;
    const Sizes& sizes() const noexcept { return sizes_; }
    const Details& details() const noexcept { return details_; }

    links::EmbedID embed;
    catena::Parameter position;  // (context, units); empty without learned positions
    std::vector<TransformerBlock> blocks;
    TransformerBlock::Normalization norm;
    std::optional<links::Linear> head;  // empty if tied

private:
    Variable vectors(const Variable& x, std::int64_t offset) const;
    Variable scores(const Variable& h) const;

    Sizes sizes_;
    Details details_;
};

// Loads a model in the format of Hugging Face: a folder with config.json, and model.safetensors or
// the files of model.safetensors.index.json. Its type is gpt2 or llama; rotary positions may be
// scaled linearly or as in Llama 3. The dropout is that of Gpt::Sizes. Throws DataError if a file is
// missing or does not fit, or if the configuration has a value that Gpt does not support.
Gpt load_gpt(const std::filesystem::path& folder, double dropout = 0);
// The tokens that end a text, by eos_token_id in the folder's generation_config.json or else in
// config.json; empty if neither has it. Throws DataError for a damaged file.
std::vector<std::int32_t> load_end_tokens(const std::filesystem::path& folder);
// The text of a config.json for the model, and a model with initial weights for such a text.
// make_gpt() throws DataError as load_gpt(), and config_of() InvalidError if the model is neither a
// GPT-2 nor a Llama, because of its Details.
std::string config_of(const Gpt& model);
Gpt make_gpt(std::string_view config, double dropout = 0);
// Writes config.json and model.safetensors to a folder, for load_gpt() and for Hugging Face's
// Transformers. Throws DataError if a file cannot be written, and the errors of config_of().
void save_gpt(const Gpt& model, const std::filesystem::path& folder);

// The names are "gpt2" and "llama". The inverse function throws InvalidError for other names.
std::string_view to_string(Gpt::Layout layout);
Gpt::Layout layout_from_string(std::string_view name);

}  // namespace catena::models
