// Finding texts, and dividing one.
#include "corpus.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

using namespace catena;
namespace fs = std::filesystem;

namespace {

// The file of a folder that has this in its name.
fs::path find_part(const fs::path& folder, const std::string& part) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().filename().string().find(part) != std::string::npos)
            found.push_back(entry.path());
    }
    if (found.size() != 1) {
        throw DataError(fmt::format("[corpus] {}: expected one file with '{}' in its name, got {}",
                                    folder.string(), part, found.size()));
    }
    return found[0];
}

std::uint64_t size_of(const TextPieces& text) {
    std::uint64_t size = 0;
    text([&](std::string_view piece) { size += piece.size(); });
    return size;
}

// Where this share of a text ends: after a line, or, where lines are long, after a word, or at least
// after a character.
std::uint64_t cut(const TextPieces& text, std::uint64_t size, double share) {
    constexpr std::uint64_t none = ~std::uint64_t{0};
    const auto target = static_cast<std::uint64_t>(share * static_cast<double>(size));
    const std::uint64_t near = target + size / 40;
    std::uint64_t line = none, word = none, character = none, at = 0;
    const auto continues = [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    };
    text([&](std::string_view piece) {
        for (std::uint64_t i = std::max(at, target); i < at + piece.size() && i <= near; ++i) {
            const char c = piece[i - at];
            if (c == '\n' && line == none) line = i + 1;
            if (c == ' ' && word == none) word = i + 1;
            if (!continues(c) && character == none) character = i;
        }
        at += piece.size();
    });
    return line != none ? line : word != none ? word : std::min(character, size);
}

}  // namespace

Corpus load_corpus(const Options& options) {
    Corpus corpus{
        options.data.empty() ? Program::shipped("shakespeare/shakespeare.txt.gz") : options.data,
        {},
        {},
        {},
        {}};
    TextPieces train, valid, test;
    if (fs::is_directory(corpus.path)) {
        train = text_pieces(find_part(corpus.path, "train"));
        valid = text_pieces(find_part(corpus.path, "valid"));
        test = text_pieces(find_part(corpus.path, "test"));
    } else {
        const TextPieces text = text_pieces(corpus.path);
        const std::uint64_t size = size_of(text);
        if (size == 0)
            throw DataError(
                fmt::format("[corpus] {}: expected text, got none", corpus.path.string()));
        const std::uint64_t first = cut(text, size, 0.9), second = cut(text, size, 0.95);
        train = part_of(text, 0, first);
        valid = part_of(text, first, second);
        test = part_of(text, second, size);
    }
    corpus.vocabulary =
        Vocabulary::of(train, options.tokens, options.min_count, options.vocabulary);
    corpus.train = corpus.vocabulary.encode(train);
    corpus.valid = corpus.vocabulary.encode(valid);
    corpus.test = corpus.vocabulary.encode(test);
    for (const auto* part : {&corpus.train, &corpus.valid, &corpus.test}) {
        if (part->size() < 2) {
            throw DataError(
                fmt::format("[corpus] {}: expected two tokens or more to train, to validate "
                            "and to test with, got {}, {} and {}",
                            corpus.path.string(), corpus.train.size(), corpus.valid.size(),
                            corpus.test.size()));
        }
    }
    return corpus;
}
