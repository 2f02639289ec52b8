// Tokenizer: calls its Vocabulary or BytePairEncoding.
#include <catena/array_file.hpp>
#include <catena/models/tokenizer.hpp>

namespace catena::models {

Tokenizer Tokenizer::load(const std::filesystem::path& file, std::string_view path) {
    const std::string name = std::string(path) + "tokenizer";
    const auto texts = load_texts(file, path);
    if (const auto found = texts.find(name); found != texts.end())
        return Tokenizer(BytePairEncoding::parse(found->second, file.string() + ": " + name));
    return Tokenizer(Vocabulary::load(file, path));
}

std::int64_t Tokenizer::size() const noexcept {
    return std::visit([](const auto& tokens) { return tokens.size(); }, tokens_);
}

std::string_view Tokenizer::unit() const noexcept {
    if (vocabulary() == nullptr) return "tokens";
    const Tokens tokens = vocabulary()->tokens();
    return tokens == Tokens::spaces ? "words" : to_string(tokens);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
    return std::visit([&](const auto& tokens) { return tokens.encode(text); }, tokens_);
}

std::vector<std::int32_t> Tokenizer::encode(const TextPieces& text) const {
    if (vocabulary() != nullptr) return vocabulary()->encode(text);
    std::string all;
    text([&](std::string_view piece) { all += piece; });
    return encode(all);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
    return std::visit([&](const auto& tokens) { return tokens.decode(ids); }, tokens_);
}

std::vector<std::string> Tokenizer::missing(std::string_view text) const {
    return vocabulary() != nullptr ? vocabulary()->missing(text) : std::vector<std::string>();
}

std::span<const std::int32_t> Tokenizer::beginning() const noexcept {
    const auto* encoding = std::get_if<BytePairEncoding>(&tokens_);
    return encoding != nullptr ? encoding->beginning() : std::span<const std::int32_t>();
}

std::vector<std::int32_t> Tokenizer::ends() const {
    if (vocabulary() != nullptr || end() < 0) return {};
    return {end()};
}

std::int32_t Tokenizer::end() const {
    if (vocabulary() == nullptr) {
        const auto& encoding = std::get<BytePairEncoding>(tokens_);
        const std::int32_t id = encoding.special_id("<|endoftext|>");
        return id >= 0 ? id : encoding.special_id("<|end_of_text|>");
    }
    for (const std::string_view token :
         {std::string_view("\n"), std::string_view("<0x0a>"), Vocabulary::end_of_line})
        if (vocabulary()->contains(token)) return vocabulary()->id(token);
    return -1;
}

void Tokenizer::visit(Visitor& visitor) {
    if (auto* words = std::get_if<Vocabulary>(&tokens_)) words->visit(visitor);
    else visitor.require("tokenizer", std::get<BytePairEncoding>(tokens_).json());
}

}  // namespace catena::models
