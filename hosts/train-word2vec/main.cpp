// catena-train-word2vec: trains word vectors and finds similar words.
#include "training.hpp"

#include <catena/fail.hpp>

using namespace catena;
namespace po = boost::program_options;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string tokens(to_string(o.tokens)), model(to_string(o.model));
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("data", options.path(o.data),
         "a text file, plain or .gz; default: the included text")
        ("tokens", options.value(tokens),
         "words, or spaces (split at spaces only)")
        ("min-count", options.value(o.min_count), "skip rarer words")
        ("subsample", options.value(o.subsample),
         "randomly skip words that are more frequent than this fraction of the text; 0: skip none")
        ("model", options.value(model),
         "skip-gram (predict from each context word) or cbow (predict from all of them)")
        ("units", options.value(o.units), "dimensions of the vectors")
        ("window", options.value(o.window), "maximum number of context words on each side")
        ("batch", options.value(o.batch), "positions per minibatch")
        ("epochs", options.value(o.epochs), "passes over the text")
        ("nearest", po::value(&o.nearest)->value_name("WORD"),
         "at the end, print the words most similar to WORD; may be repeated")
        ("top", options.value(o.top), "number of words that --nearest prints")
        ("vectors", options.per_process(options.path(o.vectors)),
         "write all vectors in word2vec's text format, one word and its numbers per line");
    // clang-format on
    o.optimizer.add_to(options);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.model = models::word_vectors_from_string(model);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    options.require(o.tokens != Tokens::characters, "tokens", "words or spaces", tokens);
    o.optimizer.check(options);
    options.require_at_least(1, {{"min-count", o.min_count},
                                 {"units", o.units},
                                 {"window", o.window},
                                 {"batch", o.batch},
                                 {"top", o.top}});
    options.require_at_least("epochs", o.epochs, 0);
    options.require(o.subsample >= 0 && o.subsample <= 1, "subsample", "0 to 1", o.subsample);
    return true;
}

}  // namespace

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
        const std::filesystem::path file =
            options.data.empty() ? shipped("shakespeare/shakespeare.txt.gz") : options.data;
        WordsOfText words(text_pieces(file), options);
        for (const std::string& word : options.nearest) {
            if (!words.vocabulary.contains(word))
                fail<DataError>(
                    "[train-word2vec] --nearest: expected one of the {} words, got '{}'",
                    words.vocabulary.size(), word);
        }
        Training training(options, program, std::move(words));
        program.snapshots.resume(training);
        program.print(fmt::format("text: {} ({} positions, vocabulary of {} words)", file.string(),
                                  training.contexts.size(), training.vocabulary.size()));
        program.print(fmt::format("net: {} of {} units, {} parameters, {}, on {}",
                                  to_string(options.model), options.units,
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return training.run(program, options.epochs);
    });
}
