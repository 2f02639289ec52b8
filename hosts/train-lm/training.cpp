// Truncated backpropagation through time.
#include "training.hpp"

#include <catena/data_error.hpp>
#include <catena/fail.hpp>

#include <algorithm>

using namespace catena;
using models::LanguageModel;

namespace {

// The token at the end of each line.
std::int32_t end_of(const Vocabulary& vocabulary) {
    const std::string_view end =
        vocabulary.tokens() == Tokens::characters ? "\n" : Vocabulary::end_of_line;
    if (!vocabulary.contains(end))
        fail<DataError>(
            "[corpus] --sentences: expected a vocabulary of {} words that includes the end of a "
            "line, got one without",
            vocabulary.size());
    return vocabulary.id(end);
}

std::unique_ptr<TextReader> open(const std::vector<std::int32_t>& tokens, const Options& options,
                                 const Vocabulary& vocabulary, std::int64_t batch,
                                 std::uint64_t seed, Device device) {
    if (!options.sentences)
        return std::make_unique<RunningText>(tokens, batch, options.steps, device);
    return std::make_unique<Sentences>(tokens, end_of(vocabulary), batch, options.steps, seed,
                                       device);
}

}  // namespace

Training::Training(const Options& how, std::int64_t seed, Corpus data, Device device)
    : Trainer(how.optimizer, seed,
              {.unit = unit_of(how.tokens),
               .scores = {"loss"},
               .columns = {"train perplexity", "valid perplexity"}}),
      corpus(std::move(data)),
      model({corpus.vocabulary.size(), how.units, how.layers, how.cell, how.dropout}),
      options(how),
      text(open(corpus.train, how, corpus.vocabulary, how.batch, static_cast<std::uint64_t>(seed),
                device)),
      state(model.begin(how.batch)),
      random(device) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(corpus.vocabulary.size()));
    for (const std::int32_t word : corpus.train) ++counts[static_cast<std::size_t>(word)];
    model.start_from(counts);
    optimizer->setup(model);
}

// [step]
void Training::step() {
    const TextBatch batch = text->next();
    if (batch.begins) state = model.begin(batch.rows[0]);
    const Variable loss = model.loss(batch, state);
    draw_once(loss);
    optimizer->cleargrads();
    // As if losses were summed over the steps: the longer the texts, the larger the gradient.
    (loss * static_cast<double>(batch.rows.size())).backward();
    state.unchain_backward();
    optimizer->clip_grads(options.clip);
    optimizer->update();
    score.add({loss.data()}, static_cast<double>(batch.size()));
}
// [/step]

void Training::visit(Visitor& v) {
    Trainer::visit(v);
    v.require("about/net", "language model").require("about/cell", to_string(options.cell));
    v.require("about/units", options.units).require("about/layers", options.layers);
    v.require("about/dropout", fmt::format("{}", options.dropout));
    v.require("options/sentences", options.sentences);
    v.require("options/clip", fmt::format("{}", options.clip));
    v("vocabulary", corpus.vocabulary)("model", model)("text", *text)("random", random);
    if (!options.sentences) v("state", state);
}

double Training::perplexity(const Program& program, const std::vector<std::int32_t>& tokens) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    const auto batch_size = std::min<std::int64_t>(options.batch, std::ssize(tokens) / 2);
    const auto reader =
        open(tokens, options, corpus.vocabulary, batch_size, 0, model.embed.W.device());
    LanguageModel::State before;
    Summary losses{"loss"};
    while (reader->epoch() == 0) {
        program.stop_if_interrupted();
        const TextBatch batch = reader->next();
        if (batch.begins) before = model.begin(batch.rows[0]);
        losses.add({model.loss(batch, before).data()}, static_cast<double>(batch.size()));
    }
    return std::exp(losses.mean("loss"));
}

Trainer::Report Training::report(const Program& program) {
    const double trained = progress(), valid = perplexity(program, corpus.valid);
    return {fmt::format("train perplexity {:.2f}  valid perplexity {:.2f}", trained, valid),
            {trained, valid}};
}

void Training::reported(const Program& program) {
    if (options.sample == 0) return;
    std::vector<std::int32_t> sample = corpus.vocabulary.encode(options.prompt);
    models::TextGenerator generate(model, sample);
    Generator generator(static_cast<std::uint64_t>(program.seed()),
                        static_cast<std::uint64_t>(text->epoch()) << 32);
    for (std::int64_t i = 0; i < options.sample; ++i) {
        program.stop_if_interrupted();
        sample.push_back(generate.next(options.temperature, generator));
    }
    program.print(fmt::format("sample: {}", corpus.vocabulary.decode(sample)));
}

void Training::complete(const Program& program) {
    program.print(fmt::format("test perplexity: {:.2f}", perplexity(program, corpus.test)));
}
