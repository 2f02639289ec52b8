// Options of catena-train-lm: their texts, and what is allowed.
#include "options.hpp"

#include <catena/catena.hpp>

#include <cmath>

namespace po = boost::program_options;
using namespace catena;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string data, tokens(to_string(o.tokens)), cell(to_string(o.cell));
    // clang-format off
    program.options().add_options()
        ("data", po::value(&data)->value_name("PATH"),
         "a text file, the last tenth of which is kept to validate and test; or a folder of three, with "
         "train, valid and test in their names; plain or .gz; without it the text that comes with the "
         "program")
        ("tokens", po::value(&tokens)->default_value(tokens),
         "words, spaces (what stands between them, as in Penn Treebank files) or characters")
        ("min-count", po::value(&o.min_count)->default_value(o.min_count),
         "rarer words are <unk>")
        ("vocabulary", po::value(&o.vocabulary)->value_name("N"), "the N most frequent words alone")
        ("sentences", po::bool_switch(&o.sentences),
         "lines as texts of their own, of any length, in place of one running text")
        ("cell", po::value(&cell)->default_value(cell), "lstm, or rnn for the plain net")
        ("units", po::value(&o.units)->default_value(o.units), "of each layer")
        ("layers", po::value(&o.layers)->default_value(o.layers), "one above the other")
        ("dropout", po::value(&o.dropout)->default_value(o.dropout), "share dropped between layers")
        ("batch", po::value(&o.batch)->default_value(o.batch), "texts read side by side")
        ("steps", po::value(&o.steps)->default_value(o.steps),
         "tokens that gradients go back; of --sentences: the longest")
        ("epochs", po::value(&o.epochs)->default_value(o.epochs), "passes over the text")
        ("max-steps", po::value(&o.max_steps)->value_name("N"), "stop after N steps at the latest")
        ("optimizer", po::value(&o.optimizer)->default_value(o.optimizer),
         "sgd, momentum_sgd, rmsprop, ada_grad or adam")
        ("lr", po::value(&o.lr), "step size; without it 0.002 for adam, 1 for sgd, else 0.01")
        ("lr-decay", po::value(&o.decay)->default_value(o.decay), "times this for each epoch ...")
        ("lr-decay-after", po::value(&o.decay_after)->default_value(o.decay_after), "... after so many")
        ("clip", po::value(&o.clip)->default_value(o.clip), "longest gradient")
        ("sample", po::value(&o.sample)->value_name("N"), "write N tokens after each epoch")
        ("prompt", po::value(&o.prompt), "that go on from this")
        ("temperature", po::value(&o.temperature)->default_value(o.temperature),
         "of samples: below 1 likelier words come more often");
    // clang-format on
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.cell = models::cell_from_string(cell);
        (void)optimizers::make(o.optimizer, 1);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    o.data = data;
    if (!program.given("lr"))
        o.lr = o.optimizer == "adam" ? 0.002 : o.optimizer == "sgd" ? 1 : 0.01;
    const auto at_least_1 = [&](const char* option, std::int64_t value) {
        program.require(!program.given(option) || value >= 1, option, "1 or more", value);
    };
    at_least_1("min-count", o.min_count);
    at_least_1("vocabulary", o.vocabulary);
    at_least_1("units", o.units);
    at_least_1("layers", o.layers);
    at_least_1("batch", o.batch);
    at_least_1("steps", o.steps);
    at_least_1("max-steps", o.max_steps);
    at_least_1("sample", o.sample);
    const auto positive = [&](const char* option, double value) {
        program.require(std::isfinite(value) && value > 0, option, "a number above 0", value);
    };
    positive("lr", o.lr);
    positive("lr-decay", o.decay);
    positive("clip", o.clip);
    positive("temperature", o.temperature);
    program.require(o.epochs >= 0, "epochs", "0 or more", o.epochs);
    program.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    program.require(o.decay_after >= 0, "lr-decay-after", "0 or more", o.decay_after);
    return true;
}
