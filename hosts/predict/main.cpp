// catena-predict: runs trained nets. Parses options and selects the task.
#include "predict.hpp"

using namespace catena;
namespace po = boost::program_options;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::vector<std::string> inputs;
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("model", options.path(o.model, "PATH"),
         "a snapshot of a training program; or a folder with a GPT-2 or Llama from Hugging Face: "
         "config.json, model.safetensors and the tokenizer")
        ("input", po::value(&inputs)->value_name("FILE"),
         "for image nets: PNG or JPEG files, folders of them, or, for digits, an IDX file; --input may be "
         "omitted")
        ("top", options.value(o.top), "print this many classes or similar words per input")
        ("batch", options.value(o.batch), "images or texts per batch")
        ("latency", po::bool_switch(&o.latency),
         "run one input at a time and print the latency without the first: p50, p95 and p99")
        ("labels", options.path(o.labels),
         "IDX labels of an IDX file: print the accuracy instead of classes")
        ("prompt", po::value(&o.prompts)->value_name("TEXT"),
         "for language models: the beginning of the text; for word vectors: a word; may be repeated")
        ("length", options.value(o.length), "number of tokens to generate, unless the text ends before");
    // clang-format on
    o.sampling.add_to(options);
    options.positional().add("input", -1);
    if (!program.parse(argc, argv)) return false;
    o.inputs.assign(inputs.begin(), inputs.end());
    if (o.model.empty()) throw po::error("--model: expected a snapshot, got none");
    options.require_at_least(1, {{"top", o.top}, {"batch", o.batch}, {"length", o.length}});
    o.sampling.check(options);
    options.require_without("latency", "batch");
    return true;
}

// Throws an error for options that do not apply to this kind of net.
void require_fitting(const ProgramOptions& options, bool images) {
    const std::string image_net = "one for images", word_net = "one for words";
    for (const char* option : {"input", "labels"})
        options.require(images || !options.given(option), option, "a net for images", word_net);
    for (const char* option : {"prompt", "length", "temperature", "top-k", "top-p"})
        options.require(!images || !options.given(option), option, "a net for words", image_net);
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
        const std::string net =
            std::filesystem::is_directory(options.model) ? "gpt" : about.text("about/net");
        const bool language = net == "language model" || net == "gpt";
        const bool images = !language && net != "word vectors";
        require_fitting(program.options, images);
        if (images) classify(program, options, about, device);
        else if (language) continue_text(program, options, about, device);
        else find_nearest(program, options, about);
        return program.finish();
    });
}
