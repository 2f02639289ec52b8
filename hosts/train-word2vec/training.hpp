// One training step, and the content of a snapshot.
#pragma once

#include "contexts.hpp"
#include "options.hpp"

#include <catena/catena.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// Those of the vocabulary: what is too rare to learn is left out.
struct WordsOfText {
    WordsOfText(const catena::TextPieces& text, const Options& how);

    catena::Vocabulary vocabulary;
    std::vector<std::int32_t> words;
    std::vector<std::int64_t> counts;  // of each of the vocabulary
};

struct Training : catena::Visitable {
    Options options;
    std::int64_t seed;
    catena::Vocabulary vocabulary;
    catena::models::WordVectors model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::schedules::Schedule rate;  // by epochs; may be empty
    Contexts contexts;
    catena::Summary score{"loss"};

    Training(const Options& how, std::int64_t seed, WordsOfText text, catena::Device device);
    std::function<void(const catena::Variable&)> look;  // at the loss of the next step
    void step();
    // The epoch is complete, but its score has not been printed yet.
    bool epoch_over() const { return contexts.position() == 0 && score.weight() > 0; }
    // Includes the options that affect the result, because resuming requires the same options.
    void visit(catena::Visitor& v) override;
};

// Throws DataError if it cannot be written.
void write_vectors(const std::filesystem::path& file, const Training& training);
