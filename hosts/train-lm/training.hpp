// The options, the text, one training step, and the content of a snapshot.
#pragma once

#include <catena/catena.hpp>
#include <catena/models/language_model.hpp>
#include <catena/sampling_options.hpp>
#include <catena/trainer.hpp>

#include <cmath>

struct Options {
    std::filesystem::path data;
    catena::Tokens tokens = catena::Tokens::words;
    std::int64_t min_count = 1;
    std::int64_t vocabulary = 0;  // 0: all words
    bool sentences = false;
    catena::models::LanguageModel::Cell cell = catena::models::LanguageModel::Cell::lstm;
    std::int64_t units = 200;
    std::int64_t layers = 1;
    double dropout = 0;
    std::int64_t batch = 20;
    std::int64_t steps = 35;
    std::int64_t epochs = 5;
    std::int64_t max_steps = 0;  // 0: no limit besides epochs
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 1}}};
    double clip = 5;
    std::int64_t sample = 0;
    std::string prompt;
    catena::SamplingOptions sampling;
};

// The text as token ids.
struct Corpus {
    std::filesystem::path path;
    catena::Vocabulary vocabulary;  // built from the training part
    std::vector<std::int32_t> train, valid, test;
};

// Returns the name of a text's tokens for output.
std::string unit_of(catena::Tokens tokens);
// Loads the text of --data, or the one installed with the program. Throws DataError.
Corpus load_corpus(const Options& options);

class Training final : public catena::Trainer {
public:
    Training(const Options& how, std::int64_t seed, Corpus text, catena::Device device);

    void visit(catena::Visitor& v) override;

    Corpus corpus;
    catena::models::LanguageModel model;

private:
    // Trains on one piece of text; gradients are truncated at its beginning.
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
    // Returns exp of the mean loss, without dropout and without a graph. Throws Interrupted.
    double perplexity(const catena::Program& program, const std::vector<std::int32_t>& tokens);

    Options options;
    std::unique_ptr<catena::TextReader> text;
    catena::models::LanguageModel::State state;  // between steps on running text
    catena::RandomStream random;                 // for dropout
};
