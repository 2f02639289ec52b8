// catena-train-lm: trains a language model on any text.
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;
namespace po = boost::program_options;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string tokens(to_string(o.tokens)), cell(to_string(o.cell));
    // clang-format off
    program.options().add_options()
        ("data", Program::path(o.data, "PATH"),
         "a text file, whose last tenth is used for validation and testing; or a folder of three files with "
         "train, valid and test in their names; plain or .gz; default: the included text")
        ("tokens", Program::value(tokens),
         "words, spaces (split at spaces only, as in Penn Treebank files) or characters")
        ("min-count", Program::value(o.min_count),
         "replace words that occur fewer than N times with <unk>")
        ("vocabulary", po::value(&o.vocabulary)->value_name("N"), "use only the N most frequent words")
        ("sentences", po::bool_switch(&o.sentences),
         "treat each line as a separate text, instead of one running text")
        ("cell", Program::value(cell), "lstm, or rnn for a simple recurrent net (Elman)")
        ("units", Program::value(o.units), "units per layer")
        ("layers", Program::value(o.layers), "number of recurrent layers")
        ("dropout", Program::value(o.dropout), "dropout ratio between layers")
        ("batch", Program::value(o.batch), "texts per minibatch")
        ("steps", Program::value(o.steps),
         "length of truncated backpropagation in tokens; with --sentences: the maximum length of a line")
        ("epochs", Program::value(o.epochs), "passes over the text")
        ("max-steps", po::value(&o.max_steps)->value_name("N"), "stop after at most N steps")
        ("clip", Program::value(o.clip), "maximum global norm of the gradients (gradient clipping)")
        ("sample", po::value(&o.sample)->value_name("N"), "generate N tokens after each epoch")
        ("prompt", po::value(&o.prompt), "beginning of the generated text");
    // clang-format on
    o.sampling.add_to(program);
    o.optimizer.add_to(program);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.cell = models::cell_from_string(cell);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    o.optimizer.check(program);
    program.require_at_least(1, {{"min-count", o.min_count},
                                 {"units", o.units},
                                 {"layers", o.layers},
                                 {"batch", o.batch},
                                 {"steps", o.steps}});
    if (program.given("vocabulary")) program.require_at_least("vocabulary", o.vocabulary, 1);
    if (program.given("max-steps")) program.require_at_least("max-steps", o.max_steps, 1);
    if (program.given("sample")) program.require_at_least("sample", o.sample, 1);
    program.require_at_least("epochs", o.epochs, 0);
    program.require_positive("clip", o.clip);
    o.sampling.check(program);
    program.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    program.require_with("prompt", "sample");
    for (const char* option : SamplingOptions::names) program.require_with(option, "sample");
    return true;
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
        Corpus corpus = load_corpus(options);
        for (const std::string& word : corpus.vocabulary.missing(options.prompt))
            program.print(
                fmt::format("note: the vocabulary does not contain '{}' of the prompt", word));
        program.print(
            fmt::format("text: {} ({} {} to train, {} to validate, {} to test), vocabulary of {}",
                        corpus.path.string(), corpus.train.size(), unit_of(options.tokens),
                        corpus.valid.size(), corpus.test.size(), corpus.vocabulary.size()));
        Training training(options, program.seed(), std::move(corpus), device);
        program.resume(training);
        program.print(fmt::format("net: {} x {} {}, {} parameters, {}, on {}", options.layers,
                                  options.units, to_string(options.cell),
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return training.run(program, options.epochs);
    });
}
