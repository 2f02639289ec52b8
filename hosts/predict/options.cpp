// Options of catena-predict: their texts, and what is allowed.
#include "options.hpp"

namespace po = boost::program_options;
using catena::Program;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string model, labels;
    std::vector<std::string> inputs;
    // clang-format off
    program.options().add_options()
        ("model", po::value(&model)->value_name("FILE"), "a snapshot of a program that trains")
        ("input", po::value(&inputs)->value_name("FILE"),
         "of image nets: PNG or JPEG files, folders of them, or, for digits, an IDX file; also without "
         "--input")
        ("top", Program::value(o.top), "likeliest classes, or nearest words, of each")
        ("batch", Program::value(o.batch), "images, or texts, at once")
        ("latency", po::bool_switch(&o.latency),
         "one after the other, and how long each but the first takes: the median, the 95th and the "
         "99th percentile")
        ("labels", po::value(&labels)->value_name("FILE"),
         "IDX labels of an IDX file: print how many are right in place of classes")
        ("prompt", po::value(&o.prompts)->value_name("TEXT"),
         "of language models: how the text begins; of word vectors: a word; may be given several times")
        ("length", Program::value(o.length), "tokens to go on with")
        ("temperature", Program::value(o.temperature),
         "below 1 likelier tokens come more often");
    // clang-format on
    program.positional().add("input", -1);
    if (!program.parse(argc, argv)) return false;
    o.model = model;
    o.labels = labels;
    o.inputs.assign(inputs.begin(), inputs.end());
    if (model.empty()) throw po::error("--model: expected a snapshot, got none");
    program.require_at_least("top", o.top, 1);
    program.require_at_least("batch", o.batch, 1);
    program.require_at_least("length", o.length, 1);
    program.require_positive("temperature", o.temperature);
    program.require_without("latency", "batch");
    return true;
}
