// One training step, and the content of a snapshot.
#pragma once

#include "corpus.hpp"
#include "options.hpp"

#include <catena/catena.hpp>
#include <catena/trainer.hpp>

#include <cmath>
#include <memory>
#include <vector>

class Training final : public catena::Trainer {
public:
    Training(const Options& how, std::int64_t seed, Corpus text, catena::Device device);

    // With the options that decide the result: a snapshot resumes only under the same ones.
    void visit(catena::Visitor& v) override;

    Corpus corpus;
    catena::models::LanguageModel model;

private:
    // One piece of text: backward as far as it goes, no further.
    void step() override;
    Place place() const override { return {text->epoch(), text->position(), text->size()}; }
    const catena::Link& net() const override { return model; }
    Report report(const catena::Program& program) override;
    void reported(const catena::Program& program) override;  // --sample
    void complete(const catena::Program& program) override;
    bool enough() const override {
        return options.max_steps > 0 && optimizer->t() >= options.max_steps;
    }
    double progress() const override { return std::exp(score.mean("loss")); }
    const char* progress_name() const override { return "perplexity"; }
    // exp of the mean loss, without dropout and without a graph. Throws Interrupted.
    double perplexity(const catena::Program& program, const std::vector<std::int32_t>& tokens);

    Options options;
    std::int64_t seed;
    std::unique_ptr<catena::TextReader> text;
    catena::models::LanguageModel::State state;  // of the running text
    catena::RandomStream random;                 // of dropout
};
