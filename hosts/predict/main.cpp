// catena-predict: runs trained nets.
#include "predict.hpp"

#include <fmt/format.h>

using namespace catena;
namespace po = boost::program_options;

namespace {

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::vector<std::string> inputs;
    // clang-format off
    program.options().add_options()
        ("model", Program::path(o.model), "a snapshot of a training program")
        ("input", po::value(&inputs)->value_name("FILE"),
         "for image nets: PNG or JPEG files, folders of them, or, for digits, an IDX file; --input may be "
         "omitted")
        ("top", Program::value(o.top), "print this many classes or similar words per input")
        ("batch", Program::value(o.batch), "images or texts per batch")
        ("latency", po::bool_switch(&o.latency),
         "run one input at a time and print the latency without the first: p50, p95 and p99")
        ("labels", Program::path(o.labels),
         "IDX labels of an IDX file: print the accuracy instead of classes")
        ("prompt", po::value(&o.prompts)->value_name("TEXT"),
         "for language models: the beginning of the text; for word vectors: a word; may be repeated")
        ("length", Program::value(o.length), "number of tokens to generate")
        ("temperature", Program::value(o.temperature),
         "sampling temperature: below 1 prefers likely tokens");
    // clang-format on
    program.positional().add("input", -1);
    if (!program.parse(argc, argv)) return false;
    o.inputs.assign(inputs.begin(), inputs.end());
    if (o.model.empty()) throw po::error("--model: expected a snapshot, got none");
    program.require_at_least(1, {{"top", o.top}, {"batch", o.batch}, {"length", o.length}});
    program.require_positive("temperature", o.temperature);
    program.require_without("latency", "batch");
    return true;
}

// Refuses options that do not apply to this kind of net.
void require_fitting(const Program& program, bool images) {
    const std::string image_net = "one for images", word_net = "one for words";
    for (const char* option : {"input", "labels"})
        program.require(images || !program.given(option), option, "a net for images", word_net);
    for (const char* option : {"prompt", "length", "temperature"})
        program.require(!images || !program.given(option), option, "a net for words", image_net);
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-predict", [&] {
        Program program(
            "catena-predict",
            "Classifies images, generates text or finds similar words with a net from a "
            "snapshot.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const About about(options.model);
        const std::string net = about.text("about/net");
        const bool images = net != "language model" && net != "word vectors";
        require_fitting(program, images);
        if (images) classify(program, options, about, device);
        else if (net == "language model") continue_text(program, options, about, device);
        else find_nearest(program, options, about);
        return program.finish();
    });
}
