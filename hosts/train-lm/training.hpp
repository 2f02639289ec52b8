// The options, the text, one training step, and the content of a snapshot.
#pragma once

#include <catena/catena.hpp>
#include <catena/models.hpp>
#include <catena/sampling_options.hpp>
#include <catena/trainer.hpp>

#include <cmath>

struct Options {
    std::filesystem::path data;
    bool gpt = false;  // else recurrent
    catena::Tokens tokens = catena::Tokens::words;
    std::filesystem::path tokenizer;  // of byte pairs; empty: tokens
    std::filesystem::path model;      // a pretrained gpt; empty: initial weights
    std::int64_t min_count = 1;
    std::int64_t vocabulary = 0;  // 0: all words
    bool sentences = false;
    catena::models::LanguageModel::Cell cell = catena::models::LanguageModel::Cell::lstm;
    catena::models::Gpt::Layout layout = catena::models::Gpt::Layout::llama;
    std::int64_t units = 200;
    std::int64_t layers = 1;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 0;  // 0: heads
    double dropout = 0;
    std::int64_t batch = 20;
    std::int64_t accumulate = 1;  // minibatches in a step
    std::int64_t steps = 35;
    bool bfloat16 = false, float16 = false;
    double ema = 0;  // decay of averages of the parameters; 0: none
    std::int64_t epochs = 5;
    std::int64_t max_steps = 0;  // 0: no limit besides epochs
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 1}, {"adam_w", 0.002}}};
    double clip = 5;
    std::int64_t sample = 0;
    std::string prompt;
    catena::SamplingOptions sampling;
};

// The text as token ids.
struct Corpus {
    std::filesystem::path path;
    catena::models::Tokenizer vocabulary;  // of words: built from the training part
    std::vector<std::int32_t> train, valid, test;
};

// Loads the text of --data, or the one installed with the program. Throws DataError.
Corpus load_corpus(const Options& options);

class Training final : public catena::Trainer {
public:
    Training(const Options& how, const catena::Program& program, Corpus text);

    void visit(catena::Visitor& v) override;

    // A line about the net, for output.
    std::string description() const;

    Corpus corpus;

private:
    using LanguageModel = catena::models::LanguageModel;

    catena::Link& link() {
        return std::visit([](auto& net) -> catena::Link& { return net; }, model);
    }
    // Calls evaluate() while the net has the averages, if there are any.
    template <class Evaluate>
    auto with_averages(const Evaluate& evaluate);
    // The mean loss of a minibatch. A recurrent net starts from `state` and updates it.
    catena::Variable loss(const catena::TextBatch& batch, LanguageModel::State& state);
    // Trains on one minibatch, or on --accumulate of them. Gradients do not go back beyond it.
    void step() override;
    Place place() const override { return {text->epoch(), text->position(), text->size()}; }
    const catena::Link& net() const override {
        return std::visit([](const auto& net) -> const catena::Link& { return net; }, model);
    }
    Report report(const catena::Program& program) override;
    void reported(const catena::Program& program) override;  // --sample
    void visit_state(catena::Visitor& v);
    void write_sample(const catena::Program& program);
    void complete(const catena::Program& program) override;
    bool enough() const override {
        return options.max_steps > 0 && optimizer->t() >= options.max_steps;
    }
    double progress() const override { return std::exp(score.mean("loss")); }
    const char* progress_name() const override { return "perplexity"; }
    // Returns the mean loss, without dropout and without a graph. Throws Interrupted.
    double mean_loss(const catena::Program& program, const std::vector<std::int32_t>& tokens);

    Options options;
    std::variant<LanguageModel, catena::models::Gpt> model;
    std::optional<catena::LossScale> loss_scale;               // --float16
    std::optional<catena::ExponentialMovingAverage> averages;  // --ema
    std::unique_ptr<catena::TextReader> text;
    LanguageModel::State state;   // between steps on running text
    catena::RandomStream random;  // for dropout
};
