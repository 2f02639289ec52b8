// Tokenizer: texts as the tokens of a language model, and back.
#pragma once

#include <catena/models/byte_pair_encoding.hpp>
#include <catena/text.hpp>

#include <variant>

namespace catena::models {

// A Vocabulary, or a BytePairEncoding. Loading a snapshot of another one throws DataError.
class Tokenizer final : public Visitable {
public:
    Tokenizer() = default;
    explicit Tokenizer(Vocabulary vocabulary) : tokens_(std::move(vocabulary)) {}
    explicit Tokenizer(BytePairEncoding encoding) : tokens_(std::move(encoding)) {}
    // Loads the tokenizer of a snapshot, saved under path. Throws DataError if there is none.
    static Tokenizer load(const std::filesystem::path& file, std::string_view path = "vocabulary/");

    // The vocabulary, or nullptr.
    const Vocabulary* vocabulary() const noexcept { return std::get_if<Vocabulary>(&tokens_); }
    std::int64_t size() const noexcept;
    // What its tokens are called in output: "words", "characters", "bytes" or "tokens".
    std::string_view unit() const noexcept;

    // Throw the errors of Vocabulary and BytePairEncoding.
    std::vector<std::int32_t> encode(std::string_view text) const;
    std::vector<std::int32_t> encode(const TextPieces& text) const;
    std::string decode(std::span<const std::int32_t> ids) const;
    // See Vocabulary::missing(). A BytePairEncoding lacks nothing.
    std::vector<std::string> missing(std::string_view text) const;
    // The tokens before a text: see BytePairEncoding. Empty for a Vocabulary.
    std::span<const std::int32_t> beginning() const noexcept;
    // The token that ends a text or a line, or -1. A model can begin a new text after it.
    std::int32_t end() const;
    // The tokens that end a text: the end token of a byte-pair encoding. A line end does not.
    std::vector<std::int32_t> ends() const;

    void visit(Visitor& visitor) override;

private:
    std::variant<Vocabulary, BytePairEncoding> tokens_;
};

}  // namespace catena::models
