// Finding texts, and dividing one.
#include "corpus.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

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

// Where this share of a text ends: behind a line, or, where lines are as long as in a text that is all one
// line, behind a word, or at least behind a character.
std::size_t cut(const std::string& text, double share) {
    auto at = static_cast<std::size_t>(share * static_cast<double>(text.size()));
    const std::size_t near = text.size() / 40;
    for (const char end : {'\n', ' '}) {
        const std::size_t found = text.find(end, at);
        if (found != text.npos && found - at <= near) return found + 1;
    }
    const auto continues = [&](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    };
    while (at < text.size() && continues(text[at])) ++at;
    return at;
}

}  // namespace

Corpus load_corpus(const Options& options) {
    Corpus corpus{
        options.data.empty() ? Program::shipped("shakespeare/shakespeare.txt.gz") : options.data,
        {},
        {},
        {},
        {}};
    std::string train, valid, test;
    if (fs::is_directory(corpus.path)) {
        train = read_text(find_part(corpus.path, "train"));
        valid = read_text(find_part(corpus.path, "valid"));
        test = read_text(find_part(corpus.path, "test"));
    } else {
        train = read_text(corpus.path);
        if (train.empty())
            throw DataError(
                fmt::format("[corpus] {}: expected text, got none", corpus.path.string()));
        const std::size_t first = cut(train, 0.9), second = cut(train, 0.95);
        valid = train.substr(first, second - first);
        test = train.substr(second);
        train.resize(first);
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
