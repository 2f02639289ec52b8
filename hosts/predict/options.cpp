// Options of catena-predict: their texts, and what is allowed.
#include "options.hpp"

#include <cmath>

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
        ("top", po::value(&o.top)->default_value(o.top), "likeliest classes, or nearest words, of each")
        ("batch", po::value(&o.batch)->default_value(o.batch), "images at once")
        ("latency", po::bool_switch(&o.latency),
         "one after the other, and how long each takes: the middle, 95 and 99 of a hundred")
        ("labels", po::value(&labels)->value_name("FILE"),
         "IDX labels of an IDX file: print how many are right in place of classes")
        ("prompt", po::value(&o.prompt), "of language models: how the text begins; of word vectors: a word")
        ("length", po::value(&o.length)->default_value(o.length), "tokens to go on with")
        ("temperature", po::value(&o.temperature)->default_value(o.temperature),
         "below 1 likelier tokens come more often");
    // clang-format on
    program.positional().add("input", -1);
    if (!program.parse(argc, argv)) return false;
    o.model = model;
    o.labels = labels;
    o.inputs.assign(inputs.begin(), inputs.end());
    if (model.empty()) throw po::error("--model: expected a snapshot, got none");
    program.require(o.top >= 1, "top", "1 or more", o.top);
    program.require(o.batch >= 1, "batch", "1 or more", o.batch);
    program.require(o.length >= 0, "length", "0 or more", o.length);
    program.require(std::isfinite(o.temperature) && o.temperature > 0, "temperature",
                    "a number above 0", o.temperature);
    return true;
}
