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

// The end of the line that is nearest behind this share of the text.
std::size_t line_end(const std::string& text, double share) {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(text.size()));
    return std::min(text.find('\n', at), text.size() - 1) + 1;
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
        const std::size_t first = line_end(train, 0.9), second = line_end(train, 0.95);
        valid = train.substr(first, second - first);
        test = train.substr(second);
        train.resize(first);
    }
    corpus.vocabulary =
        Vocabulary::of(train, options.tokens, options.min_count, options.vocabulary);
    corpus.train = corpus.vocabulary.encode(train);
    corpus.valid = corpus.vocabulary.encode(valid);
    corpus.test = corpus.vocabulary.encode(test);
    return corpus;
}
