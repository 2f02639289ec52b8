// One training step, and the content of a snapshot.
#pragma once

#include "corpus.hpp"
#include "options.hpp"

#include <catena/catena.hpp>

#include <memory>

struct Training : catena::Visitable {
    Options options;
    std::int64_t seed;
    catena::Vocabulary vocabulary;
    catena::models::LanguageModel model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::schedules::Schedule rate;  // by epochs; may be empty
    std::unique_ptr<catena::TextReader> text;
    catena::models::LanguageModel::State state;  // of the running text
    catena::RandomStream random;                 // of dropout
    catena::Summary score{"loss"};               // of this epoch

    Training(const Options& how, std::int64_t seed, const Corpus& corpus, catena::Device device);
    std::function<void(const catena::Variable&)> look;  // at the loss of the next step

    // One piece of text: backward as far as it goes, no further.
    void step();
    // The epoch is complete, but its score has not been printed yet.
    bool epoch_over() const { return text->position() == 0 && score.weight() > 0; }
    // Includes the options that affect the result, because resuming requires the same options.
    void visit(catena::Visitor& v) override;
};

// exp of the mean loss, without dropout and without a graph. Throws Interrupted.
double perplexity(const catena::Program& program, catena::models::LanguageModel& model,
                  const std::vector<std::int32_t>& tokens, const Options& options,
                  const catena::Vocabulary& vocabulary);
