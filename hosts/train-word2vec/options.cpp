// Options of catena-train-word2vec: their texts, and what is allowed.
#include "options.hpp"

#include <catena/catena.hpp>

#include <cmath>

namespace po = boost::program_options;
using namespace catena;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data, vectors, tokens(to_string(o.tokens)), model(to_string(o.model));
    // clang-format off
    program.options().add_options()
        ("data", po::value(&data)->value_name("FILE"),
         "a text, plain or .gz; without it the one that comes with the programs")
        ("tokens", po::value(&tokens)->default_value(tokens),
         "words, or spaces (what stands between them)")
        ("min-count", po::value(&o.min_count)->default_value(o.min_count), "rarer words are left out")
        ("subsample", po::value(&o.subsample)->default_value(o.subsample),
         "leave out more of the words that are more frequent than this share of the text; 0: none")
        ("model", po::value(&model)->default_value(model),
         "skip-gram (from each word around), or cbow (from all together)")
        ("units", po::value(&o.units)->default_value(o.units), "of a vector")
        ("window", po::value(&o.window)->default_value(o.window), "words looked at on each side, at most")
        ("batch", po::value(&o.batch)->default_value(o.batch), "places in a minibatch")
        ("epochs", po::value(&o.epochs)->default_value(o.epochs), "passes over the text")
        ("optimizer", po::value(&o.optimizer)->default_value(o.optimizer),
         "sgd, momentum_sgd, rmsprop, ada_grad or adam")
        ("lr", po::value(&o.lr)->default_value(o.lr), "step size")
        ("nearest", po::value(&o.nearest)->value_name("WORD"),
         "print the words nearest to WORD at the end; may be given several times")
        ("top", po::value(&o.top)->default_value(o.top), "so many of them")
        ("vectors", po::value(&vectors)->value_name("FILE"),
         "write all vectors as text, a word and its numbers in a line (word2vec's own format)");
    // clang-format on
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.model = models::word_vectors_from_string(model);
        (void)optimizers::make(o.optimizer, 1);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    o.data = data;
    o.vectors = vectors;
    program.require(o.tokens != Tokens::characters, "tokens", "words or spaces", tokens);
    const auto at_least_1 = [&](const char* option, std::int64_t value) {
        program.require(value >= 1, option, "1 or more", value);
    };
    at_least_1("min-count", o.min_count);
    at_least_1("units", o.units);
    at_least_1("window", o.window);
    at_least_1("batch", o.batch);
    at_least_1("top", o.top);
    program.require(o.epochs >= 0, "epochs", "0 or more", o.epochs);
    program.require(std::isfinite(o.lr) && o.lr > 0, "lr", "a number above 0", o.lr);
    program.require(o.subsample >= 0 && o.subsample <= 1, "subsample", "0 to 1", o.subsample);
    return true;
}
