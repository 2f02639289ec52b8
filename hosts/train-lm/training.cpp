// Truncated backpropagation through time.
#include "training.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

using namespace catena;
using models::LanguageModel;

namespace {

// Lines end with this.
std::int32_t end_of(const Vocabulary& vocabulary) {
    const std::string_view end =
        vocabulary.tokens() == Tokens::characters ? "\n" : Vocabulary::end_of_line;
    if (!vocabulary.contains(end)) {
        throw DataError(
            fmt::format("[corpus] --sentences: expected a vocabulary of {} words that includes the "
                        "end of a line, got one without",
                        vocabulary.size()));
    }
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

Training::Training(const Options& how, std::int64_t number, const Corpus& corpus, Device device)
    : options(how),
      seed(number),
      vocabulary(corpus.vocabulary),
      model({vocabulary.size(), how.units, how.layers, how.cell, how.dropout}),
      optimizer(how.optimizer.make()),
      rate(how.optimizer.rate()),
      text(open(corpus.train, how, vocabulary, how.batch, static_cast<std::uint64_t>(number),
                device)),
      state(model.begin(how.batch)),
      random(device) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary.size()));
    for (const std::int32_t word : corpus.train) ++counts[static_cast<std::size_t>(word)];
    model.start_from(counts);
    optimizer->setup(model);
}

// [step]
void Training::step() {
    if (rate) optimizer->set_rate(rate(static_cast<double>(text->epoch())));
    const TextBatch batch = text->next();
    if (batch.begins) state = model.begin(batch.rows[0]);
    const Variable loss = model.loss(batch, state);
    if (const auto once = std::exchange(look, nullptr)) once(loss);
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
    v.require("about/net", "language model").require("about/cell", to_string(options.cell));
    v.require("about/units", options.units).require("about/layers", options.layers);
    v.require("about/dropout", fmt::format("{}", options.dropout));
    v.require("options/sentences", options.sentences);
    v("options", options.optimizer).require("options/clip", fmt::format("{}", options.clip));
    v.require("options/seed", seed);
    v("vocabulary", vocabulary)("model", model)("optimizer", *optimizer)("text", *text);
    if (!options.sentences) v("state", state);
    v("random", random)("score", score);
}

double perplexity(const Program& program, LanguageModel& model,
                  const std::vector<std::int32_t>& tokens, const Options& options,
                  const Vocabulary& vocabulary) {
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    const auto batch_size = std::min<std::int64_t>(options.batch, std::ssize(tokens) / 2);
    const auto text = open(tokens, options, vocabulary, batch_size, 0, model.embed.W.device());
    LanguageModel::State state;
    Summary score{"loss"};
    while (text->epoch() == 0) {
        program.stop_if_interrupted();
        const TextBatch batch = text->next();
        if (batch.begins) state = model.begin(batch.rows[0]);
        score.add({model.loss(batch, state).data()}, static_cast<double>(batch.size()));
    }
    return std::exp(score.mean("loss"));
}
