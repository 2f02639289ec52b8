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
    const std::vector<std::int32_t> prompt = training.vocabulary.encode(options.prompt);
    Generator generator(static_cast<std::uint64_t>(program.seed()),
                        static_cast<std::uint64_t>(training.text->epoch()) << 32);
    std::vector<std::int32_t> text = prompt;
    for (const std::int32_t id : models::continue_text(training.model, prompt, options.sample,
                                                       options.temperature, generator))
        text.push_back(id);
    program.print(fmt::format("sample: {}", training.vocabulary.decode(text)));
}

int train(const Program& program, const Options& options, Training& training,
          const Corpus& corpus) {
    TextReader& text = *training.text;
    const std::string unit = unit_of(options.tokens);
    Curves curves = program.curves({"epoch", "train perplexity", "valid perplexity", unit + "/s"},
                                   text.epoch());
    training.look = program.drawing(training.model);
    const auto at_end = [&] {
        return text.epoch() >= options.epochs ||
               (options.max_steps > 0 && training.optimizer->t() >= options.max_steps);
    };
    while (!at_end()) {
        const std::int64_t epoch = text.epoch() + 1;
        Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), text.size(), unit,
                          stderr);
        progress.update(text.position(), 0);
        while (text.epoch() < epoch && !at_end()) {
            training.step();
            const bool finished = text.epoch() == epoch;
            progress.update(
                finished ? text.size() : text.position(),
                [&] { return std::exp(training.score.mean("loss")); }, "perplexity");
            if (program.interrupted() && !finished) {
                progress.clear();
                return program.stop(fmt::format("in epoch {}", epoch), training);
            }
            program.save_after_step(training.optimizer->t(), training);
        }
        const double rate = progress.rate();
        progress.clear();
        const double trained = std::exp(training.score.mean("loss"));
        const double valid = perplexity(training.model, corpus.valid, options, corpus.vocabulary);
        program.print(
            fmt::format("epoch {:3}  train perplexity {:.2f}  valid perplexity {:.2f}  {:.0f} {}/s",
                        epoch, trained, valid, rate, unit));
        curves.add({static_cast<double>(epoch), trained, valid, rate});
        if (text.epoch() == epoch) training.score.clear();
        if (options.sample > 0) print_sample(program, training, options);
        program.save(training);
        if (program.interrupted()) return program.finish();
    }
    program.print(fmt::format("test perplexity: {:.2f}",
                              perplexity(training.model, corpus.test, options, corpus.vocabulary)));
    return program.finish();
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-lm", [&] {
        Program program("catena-train-lm",
                        "Trains a recurrent net to say what word comes next in a text.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const Corpus corpus = load_corpus(options);
        program.print(
            fmt::format("text: {} ({} {} to train, {} to validate, {} to test), {} of them "
                        "different",
                        corpus.path.string(), corpus.train.size(), unit_of(options.tokens),
                        corpus.valid.size(), corpus.test.size(), corpus.vocabulary.size()));
        Training training(options, program.seed(), corpus, device);
        program.resume(training);
        program.print(fmt::format("net: {} x {} {}, {} parameters, {}, on {}", options.layers,
                                  options.units, to_string(options.cell),
                                  training.model.count_parameters(), options.optimizer,
                                  device.name()));
        return train(program, options, training, corpus);
    });
}
