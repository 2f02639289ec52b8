// The options of catena-predict: help texts and checks.
#include "options.hpp"

namespace po = boost::program_options;
using catena::Program;

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string model, labels;
    std::vector<std::string> inputs;
    // clang-format off
    program.options().add_options()
        ("model", po::value(&model)->value_name("FILE"), "a snapshot of a training program")
        ("input", po::value(&inputs)->value_name("FILE"),
         "for image nets: PNG or JPEG files, folders of them, or, for digits, an IDX file; --input may be "
         "omitted")
        ("top", Program::value(o.top), "print this many classes or similar words per input")
        ("batch", Program::value(o.batch), "images or texts per batch")
        ("latency", po::bool_switch(&o.latency),
         "run one input at a time and print the latency without the first: p50, p95 and p99")
        ("labels", po::value(&labels)->value_name("FILE"),
         "IDX labels of an IDX file: print the accuracy instead of classes")
        ("prompt", po::value(&o.prompts)->value_name("TEXT"),
         "for language models: the beginning of the text; for word vectors: a word; may be repeated")
        ("length", Program::value(o.length), "number of tokens to generate")
        ("temperature", Program::value(o.temperature),
         "sampling temperature: below 1 prefers likely tokens");
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
