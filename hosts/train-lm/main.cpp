// catena-train-lm: trains a language model on any text.
#include "corpus.hpp"
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

using namespace catena;

namespace {

std::string unit_of(Tokens tokens) { return tokens == Tokens::characters ? "characters" : "words"; }

void print_sample(const Program& program, Training& training, const Options& options) {
    std::vector<std::int32_t> text = training.vocabulary.encode(options.prompt);
    models::TextGenerator generating(training.model, text);
    Generator generator(static_cast<std::uint64_t>(program.seed()),
                        static_cast<std::uint64_t>(training.text->epoch()) << 32);
    for (std::int64_t i = 0; i < options.sample; ++i) {
        program.stop_if_interrupted();
        text.push_back(generating.next(options.temperature, generator));
    }
    program.print(fmt::format("sample: {}", training.vocabulary.decode(text)));
}

int train(const Program& program, const Options& options, Training& training,
          const Corpus& corpus) {
    TextReader& text = *training.text;
    const std::string unit = unit_of(options.tokens);
    const auto perplexity_of = [&](const std::vector<std::int32_t>& tokens) {
        return perplexity(program, training.model, tokens, options, training.vocabulary);
    };
    Curves curves = program.curves({"epoch", "train perplexity", "valid perplexity", unit + "/s"},
                                   text.epoch() - (training.epoch_over() ? 1 : 0));
    training.look = program.drawing(training.model);
    const auto enough = [&] {
        return options.max_steps > 0 && training.optimizer->t() >= options.max_steps;
    };
    while (training.epoch_over() || (text.epoch() < options.epochs && !enough())) {
        const std::int64_t epoch = text.epoch() + (training.epoch_over() ? 0 : 1);
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), text.size(), unit,
                          stderr);
        progress.update(training.epoch_over() ? text.size() : text.position(), 0);
        while (!training.epoch_over() && !enough()) {
            training.step();
            progress.update(
                training.epoch_over() ? text.size() : text.position(),
                [&] { return std::exp(training.score.mean("loss")); }, "perplexity");
            if (program.interrupted()) {
                progress.clear();
                return program.stop(fmt::format("in epoch {}", epoch), training);
            }
            program.save_after_step(training.optimizer->t(), training);
        }
        const double rate = progress.rate();
        progress.clear();
        const double trained = std::exp(training.score.mean("loss"));
        program.require_finite(trained);
        double valid = 0;
        try {
            valid = perplexity_of(corpus.valid);
        } catch (const Interrupted&) {
            return program.stop(fmt::format("after epoch {}", epoch), training);
        }
        const std::string line =
            fmt::format("epoch {:3}  train perplexity {:.2f}  valid perplexity {:.2f}  {:.0f} {}/s",
                        epoch, trained, valid, rate, unit);
        curves.add({static_cast<double>(epoch), trained, valid, rate});
        if (training.epoch_over()) training.score.clear();
        program.save(training);
        program.print(line);  // may fail: saved before
        if (options.sample > 0) print_sample(program, training, options);
        if (program.interrupted()) return program.finish();
    }
    program.print(fmt::format("test perplexity: {:.2f}", perplexity_of(corpus.test)));
    return program.finish();
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-lm", [&] {
        Program program("catena-train-lm",
                        "Trains a recurrent net to predict the next word of a text.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const Corpus corpus = load_corpus(options);
        for (const std::string& word : corpus.vocabulary.missing(options.prompt))
            program.print(
                fmt::format("note: the vocabulary does not contain '{}' of the prompt", word));
        program.print(
            fmt::format("text: {} ({} {} to train, {} to validate, {} to test), vocabulary of {}",
                        corpus.path.string(), corpus.train.size(), unit_of(options.tokens),
                        corpus.valid.size(), corpus.test.size(), corpus.vocabulary.size()));
        Training training(options, program.seed(), corpus, device);
        program.resume(training);
        program.print(fmt::format("net: {} x {} {}, {} parameters, {}, on {}", options.layers,
                                  options.units, to_string(options.cell),
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return train(program, options, training, corpus);
    });
}
