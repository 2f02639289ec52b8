// One training step, and the content of a snapshot.
#pragma once

#include "contexts.hpp"
#include "options.hpp"

#include <catena/catena.hpp>
#include <catena/trainer.hpp>

#include <string>
#include <vector>

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

    // With the options that decide the result: a snapshot resumes only under the same ones.
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
    std::int64_t seed;
};
