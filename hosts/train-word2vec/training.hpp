// The options, one training step, and the content of a snapshot.
#pragma once

#include <catena/catena.hpp>
#include <catena/models/word_vectors.hpp>
#include <catena/trainer.hpp>
#include "contexts.hpp"

struct Options {
    std::filesystem::path data;
    catena::Tokens tokens = catena::Tokens::words;
    std::int64_t min_count = 5;
    double subsample = 1e-3;
    catena::models::WordVectors::Kind model = catena::models::WordVectors::Kind::skip_gram;
    std::int64_t units = 100;
    std::int64_t window = 5;
    std::int64_t batch = 500;
    std::int64_t epochs = 10;
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 0.5}}};
    std::vector<std::string> nearest;
    std::int64_t top = 10;
    std::filesystem::path vectors;
};

// Those of the vocabulary: what is too rare to learn is left out.
struct WordsOfText {
    WordsOfText(const catena::TextPieces& text, const Options& how);

    catena::Vocabulary vocabulary;
    std::vector<std::int32_t> words;
    std::vector<std::int64_t> counts;  // of each of the vocabulary
};

class Training final : public catena::Trainer {
public:
    Training(const Options& how, std::int64_t seed, WordsOfText text, catena::Device device);

    void visit(catena::Visitor& v) override;

    catena::Vocabulary vocabulary;
    catena::models::WordVectors model;
    Contexts contexts;

private:
    void step() override;
    Place place() const override {
        return {contexts.epoch(), contexts.position(), contexts.size()};
    }
    const catena::Link& net() const override { return model; }
    Report report(const catena::Program&) override;
    void complete(const catena::Program& program) override;  // --vectors and --nearest
    void write_vectors() const;
    void print_nearest(const catena::Program& program, const std::string& word) const;

    Options options;
};
