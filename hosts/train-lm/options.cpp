// Options of catena-train-lm: their texts, and what is allowed.
#include "options.hpp"

#include <catena/catena.hpp>

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
        ("tokens", Program::value(tokens),
         "words, spaces (what stands between them, as in Penn Treebank files) or characters")
        ("min-count", Program::value(o.min_count),
         "rarer words are <unk>")
        ("vocabulary", po::value(&o.vocabulary)->value_name("N"), "the N most frequent words alone")
        ("sentences", po::bool_switch(&o.sentences),
         "lines as texts of their own, of any length, in place of one running text")
        ("cell", Program::value(cell), "lstm, or rnn for a simple one (Elman)")
        ("units", Program::value(o.units), "of each layer")
        ("layers", Program::value(o.layers), "one above the other")
        ("dropout", Program::value(o.dropout), "share dropped between layers")
        ("batch", Program::value(o.batch), "texts read side by side")
        ("steps", Program::value(o.steps),
         "tokens that gradients go back; of --sentences: the longest")
        ("epochs", Program::value(o.epochs), "passes over the text")
        ("max-steps", po::value(&o.max_steps)->value_name("N"), "stop after N steps at the latest")
        ("clip", Program::value(o.clip), "the gradients' norm, all together, at most")
        ("sample", po::value(&o.sample)->value_name("N"), "write N tokens after each epoch")
        ("prompt", po::value(&o.prompt), "that go on from this")
        ("temperature", Program::value(o.temperature),
         "of samples: below 1 likelier words come more often");
    // clang-format on
    o.optimizer.add_to(program);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.cell = models::cell_from_string(cell);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    o.data = data;
    o.optimizer.check(program);
    program.require_at_least("min-count", o.min_count, 1);
    if (program.given("vocabulary")) program.require_at_least("vocabulary", o.vocabulary, 1);
    program.require_at_least("units", o.units, 1);
    program.require_at_least("layers", o.layers, 1);
    program.require_at_least("batch", o.batch, 1);
    program.require_at_least("steps", o.steps, 1);
    if (program.given("max-steps")) program.require_at_least("max-steps", o.max_steps, 1);
    if (program.given("sample")) program.require_at_least("sample", o.sample, 1);
    program.require_at_least("epochs", o.epochs, 0);
    program.require_positive("clip", o.clip);
    program.require_positive("temperature", o.temperature);
    program.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    program.require_with("prompt", "sample");
    program.require_with("temperature", "sample");
    return true;
}
