// catena-train-word2vec: trains word vectors and finds similar words.
#include "options.hpp"
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;

int main(int argc, char** argv) {
    return run_program("catena-train-word2vec", [&] {
        Program program("catena-train-word2vec",
                        "Trains a vector for each word of a text from the words around it, with a "
                        "hierarchical softmax over a Huffman tree of the words.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        if (!options.vectors.empty()) require_writable(options.vectors);
        const Device device = program.start();
        const using_device scope(device);
        const std::filesystem::path file = options.data.empty()
                                               ? Program::shipped("shakespeare/shakespeare.txt.gz")
                                               : options.data;
        WordsOfText words(text_pieces(file), options);
        for (const std::string& word : options.nearest) {
            if (!words.vocabulary.contains(word))
                throw DataError(
                    fmt::format("[train-word2vec] --nearest: expected one of the {} words, "
                                "got '{}'",
                                words.vocabulary.size(), word));
        }
        Training training(options, program.seed(), std::move(words), device);
        program.resume(training);
        program.print(fmt::format("text: {} ({} positions, vocabulary of {} words)", file.string(),
                                  training.contexts.size(), training.vocabulary.size()));
        program.print(fmt::format("net: {} of {} units, {} parameters, {}, on {}",
                                  to_string(options.model), options.units,
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return training.run(program, options.epochs);
    });
}
