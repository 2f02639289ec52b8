// WordVectors: words as vectors, trained from their contexts.
#pragma once

#include <catena/links.hpp>

namespace catena::models {

// Trains a vector for each word, from which the word in the middle of its context is predicted with
// a hierarchical softmax over a tree of words: from each context word alone, or from their mean.
// (Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", 2013, and
// "Distributed Representations of Words and Phrases and their Compositionality", 2013.)
class WordVectors : public Chain {
public:
    enum class Kind : std::uint8_t { skip_gram, cbow };

    // The tree has the words 0 to words - 1 of a vocabulary. Throws ShapeError for sizes below 1.
    WordVectors(std::int64_t words, std::int64_t units, const WordTree& tree, Kind kind);

    // center: words (N,); contexts: the words around them (N, k). Returns the predictions' mean.
    Variable loss(const Array& center, const Array& contexts);
    void visit(Visitor& visitor) override { visitor("embed", embed)("softmax", softmax); }

    links::EmbedID embed;
    links::BinaryHierarchicalSoftmax softmax;

private:
    Kind kind_;
};

// The names are "skip-gram" and "cbow". The inverse function throws InvalidError for other names.
std::string_view to_string(WordVectors::Kind kind);
WordVectors::Kind word_vectors_from_string(std::string_view name);

// The n words whose vectors, rows of W, have the largest cosine similarity with that of word, best
// first, with the cosines. Throws InvalidError if there is no such word.
std::vector<std::pair<std::int64_t, double>> nearest_words(const Array& W, std::int64_t word,
                                                           std::int64_t n);

}  // namespace catena::models
