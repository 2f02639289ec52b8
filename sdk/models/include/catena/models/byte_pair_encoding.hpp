// BytePairEncoding: texts as tokens of a pretrained language model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::models {

// Tokens of bytes that a language model was trained with. A text is split into words by the
// tokenizer's pattern, and a word into bytes, whose adjacent pairs are merged in the order of the
// merges. (Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
// Units", 2016; on bytes: Radford and others, "Language Models are Unsupervised Multitask
// Learners", 2019.) Thread-safe. Copies share the tables.
class BytePairEncoding {
public:
    // Reads tokenizer.json (of Hugging Face, with the model "BPE" on bytes, as GPT-2, Llama 3,
    // SmolLM2, Qwen 2 and Qwen 3 have it), or GPT-2's files vocab.json and merges.txt. `path` is
    // tokenizer.json, or a folder with either; add_bos_token in tokenizer_config.json decides
    // whether a text begins with bos_token. Throws DataError if a file is missing, invalid, or has
    // another kind of tokenizer.
    static BytePairEncoding load(const std::filesystem::path& path);
    // The same from the text of a tokenizer.json. `name` stands for the file in errors.
    static BytePairEncoding parse(std::string_view json, const std::string& name = "tokenizer");
    // The text of the tokenizer.json, with what the other files say.
    const std::string& json() const noexcept;

    // One more than the largest id.
    std::int64_t size() const noexcept;
    // Returns the ids of a text. Special tokens in the text, such as <|endoftext|>, become their
    // ids if `special`, else ordinary text. Does not add beginning(). Throws InvalidError if the
    // text is not UTF-8. As in the package tokenizers, bytes without a token are dropped, unless
    // the file has a token for them (unk_token), and the text is normalized first (NFC in Qwen 2).
    std::vector<std::int32_t> encode(std::string_view text, bool special = true) const;
    // Returns the text of the ids, which may begin or end within a code point. Ids without a token,
    // which models may have, have no text. Throws InvalidError for negative ids.
    std::string decode(std::span<const std::int32_t> ids) const;
    // The tokens that come before a text, such as <|begin_of_text|>; may be empty.
    std::span<const std::int32_t> beginning() const noexcept;
    // Returns the id of a special token, or -1.
    std::int32_t special_id(std::string_view token) const;

private:
    struct Tables;
    explicit BytePairEncoding(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {}

    std::shared_ptr<const Tables> tables_;
};

}  // namespace catena::models
