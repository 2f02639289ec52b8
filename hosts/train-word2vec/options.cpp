// The options of catena-train-word2vec: help texts and checks.
#include "options.hpp"

#include <catena/catena.hpp>

namespace po = boost::program_options;
using namespace catena;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data, vectors, tokens(to_string(o.tokens)), model(to_string(o.model));
    // clang-format off
    program.options().add_options()
        ("data", po::value(&data)->value_name("FILE"),
         "a text file, plain or .gz; default: the included text")
        ("tokens", Program::value(tokens),
         "words, or spaces (split at spaces only)")
        ("min-count", Program::value(o.min_count), "skip rarer words")
        ("subsample", Program::value(o.subsample),
         "randomly skip words that are more frequent than this fraction of the text; 0: skip none")
        ("model", Program::value(model),
         "skip-gram (predict from each context word) or cbow (predict from all of them)")
        ("units", Program::value(o.units), "dimensions of the vectors")
        ("window", Program::value(o.window), "maximum number of context words on each side")
        ("batch", Program::value(o.batch), "positions per minibatch")
        ("epochs", Program::value(o.epochs), "passes over the text")
        ("nearest", po::value(&o.nearest)->value_name("WORD"),
         "at the end, print the words most similar to WORD; may be repeated")
        ("top", Program::value(o.top), "number of words that --nearest prints")
        ("vectors", po::value(&vectors)->value_name("FILE"),
         "write all vectors in word2vec's text format, one word and its numbers per line");
    // clang-format on
    o.optimizer.add_to(program);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.model = models::word_vectors_from_string(model);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    o.data = data;
    o.vectors = vectors;
    program.require(o.tokens != Tokens::characters, "tokens", "words or spaces", tokens);
    o.optimizer.check(program);
    program.require_at_least("min-count", o.min_count, 1);
    program.require_at_least("units", o.units, 1);
    program.require_at_least("window", o.window, 1);
    program.require_at_least("batch", o.batch, 1);
    program.require_at_least("top", o.top, 1);
    program.require_at_least("epochs", o.epochs, 0);
    program.require(o.subsample >= 0 && o.subsample <= 1, "subsample", "0 to 1", o.subsample);
    return true;
}
