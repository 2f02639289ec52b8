// Options of catena-train-word2vec: their texts, and what is allowed.
#include "options.hpp"

#include <catena/catena.hpp>

namespace po = boost::program_options;
using namespace catena;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data, vectors, tokens(to_string(o.tokens)), model(to_string(o.model));
    // clang-format off
    program.options().add_options()
        ("data", po::value(&data)->value_name("FILE"),
         "a text, plain or .gz; without it the one that comes with the programs")
        ("tokens", Program::value(tokens),
         "words, or spaces (what stands between them)")
        ("min-count", Program::value(o.min_count), "rarer words are left out")
        ("subsample", Program::value(o.subsample),
         "leave out more of the words that are more frequent than this share of the text; 0: none")
        ("model", Program::value(model),
         "skip-gram (from each word around), or cbow (from all together)")
        ("units", Program::value(o.units), "of a vector")
        ("window", Program::value(o.window), "words looked at on each side, at most")
        ("batch", Program::value(o.batch), "places in a minibatch")
        ("epochs", Program::value(o.epochs), "passes over the text")
        ("nearest", po::value(&o.nearest)->value_name("WORD"),
         "print the words nearest to WORD at the end; may be given several times")
        ("top", Program::value(o.top), "so many of them")
        ("vectors", po::value(&vectors)->value_name("FILE"),
         "write all vectors as text, a word and its numbers in a line (word2vec's own format)");
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
