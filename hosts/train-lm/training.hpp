// One step of training, and everything that a snapshot has.
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
    // The last step was the last of an epoch, whose score is still to be told.
    bool epoch_over() const { return text->position() == 0 && score.weight() > 0; }
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;
};

// exp of the mean loss, without dropout and without a graph. Throws Interrupted.
double perplexity(const catena::Program& program, catena::models::LanguageModel& model,
                  const std::vector<std::int32_t>& tokens, const Options& options,
                  const catena::Vocabulary& vocabulary);
