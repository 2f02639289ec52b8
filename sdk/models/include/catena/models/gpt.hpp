// Gpt: a transformer that predicts the next token.
#pragma once

#include <catena/models/text_generation.hpp>
#include <catena/models/transformer.hpp>

#include <filesystem>

namespace catena::models {

// The net adds vectors of positions to vectors of tokens (or rotates keys and queries by
// positions), applies causal TransformerBlocks, normalizes, and computes scores for the next token.
// Dropout is used in training. The layouts are those of GPT-2 (Radford and others, "Language Models
// are Unsupervised Multitask Learners", 2019) and Llama (Touvron and others, 2023).
class Gpt : public Chain {
public:
    enum class Layout : std::uint8_t {
        gpt2,   // learned positions, layer normalization, GELU (tanh), biases, tied vectors
        llama,  // rotary positions, RMS normalization, SwiGLU, no biases, untied scores
    };
    struct Sizes {
        std::int64_t words;          // the vocabulary
        std::int64_t context = 256;  // the longest text, in tokens
        std::int64_t units = 256;
        std::int64_t layers = 4;
        std::int64_t heads = 4;
        std::int64_t kv_heads = 0;   // heads of keys and values, which heads share; 0: heads
        std::int64_t head_size = 0;  // units of a head; 0: units / heads
        std::int64_t hidden = 0;     // units of the MLP; 0: 4 units, or 8/3 units in Llama
        Layout layout = Layout::gpt2;
        double dropout = 0;
    };
    // The layout sets these; a program may change each of them.
    struct Details {
        explicit Details(Layout layout);

        TransformerBlock::Norm norm;
        TransformerBlock::Activation activation;
        bool learned_positions;
        double rotary_base;  // 0: positions are not rotary
        links::RotaryScaling rotary_scaling;
        bool bias;             // of linear layers
        bool tied;             // the scores use the vectors of tokens as weights
        bool qk_norm = false;  // each head of queries and keys is normalized, as in Qwen 3
        double eps = 1e-5;     // of the normalization
    };

    // Throws ShapeError for sizes below 1, InvalidError unless 0 <= dropout < 1.
    explicit Gpt(const Sizes& sizes) : Gpt(sizes, Details(sizes.layout)) {}
    Gpt(const Sizes& sizes, const Details& details);

    // Scores (N, T, words) of the token after each of x (N, T), or ShapeError unless T <= context.
    Variable operator()(const Variable& x) const override;
    // mask, lengths: those of MultiHeadAttention, for every block.
    Variable operator()(const Variable& x, const Variable& mask,
                        const Variable& lengths = {}) const;
    // The mean cross entropy of the tokens t (N, T) that follow those of x.
    Variable loss(const Variable& x, const Variable& t) const;

    // Keys and values of earlier tokens, for each block. Empty, for n texts of `places` tokens:
    using Cache = std::vector<TransformerBlock::Cache>;
    Cache make_cache(std::int64_t n, std::int64_t places) const;
    // Reads tokens x (N, T) that follow those in the cache, adds them to the cache, and returns the
    // scores (N, words) of the token after them. Throws ShapeError if the cache is too small.
    Variable next_scores(const Variable& x, Cache& cache) const;

    // A reader for TextGenerator and continue_texts(). A text longer than `context` is read again
    // from its last context / 2 tokens, and forgets those before them.
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
// the files that model.safetensors.index.json lists. Its type is gpt2, llama (also SmolLM2), qwen2
// or qwen3, without sliding windows; rotary positions may be scaled linearly or as in Llama 3.
// dropout: as in Gpt::Sizes. Draws no random numbers. Throws DataError if a file is missing or
// damaged, if arrays are missing or left over, and for values that Gpt does not support.
Gpt load_gpt(const std::filesystem::path& folder, double dropout = 0);
// The tokens that end a text, by eos_token_id in the folder's generation_config.json or else in
// config.json; empty if neither has it. Throws DataError for a damaged file.
std::vector<std::int32_t> load_end_tokens(const std::filesystem::path& folder);
// The text of a config.json for the model, and a model with initial weights for such a text.
// make_gpt() throws DataError as load_gpt(), and config_of() InvalidError for other Details.
std::string config_of(const Gpt& model);
Gpt make_gpt(std::string_view config, double dropout = 0);
// Writes config.json and model.safetensors to a folder, for load_gpt() and for Hugging Face's
// Transformers. Throws DataError if a file cannot be written, and the errors of config_of().
void save_gpt(const Gpt& model, const std::filesystem::path& folder);

// The names are "gpt2" and "llama". The inverse function throws InvalidError for other names.
std::string_view to_string(Gpt::Layout layout);
Gpt::Layout layout_from_string(std::string_view name);

}  // namespace catena::models
