// catena-train-lm: trains a language model on any text.
#include "corpus.hpp"
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

using namespace catena;

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
