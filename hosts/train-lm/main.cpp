// catena-train-lm: trains a language model on any text.
#include "training.hpp"

#include <fmt/format.h>

using namespace catena;
namespace po = boost::program_options;

namespace {

// A gpt needs other sizes than a recurrent net.
void set_gpt_defaults(const ProgramOptions& options, Options& o) {
    const auto set = [&](const char* option, auto& value, auto otherwise) {
        if (!options.given(option)) value = otherwise;
    };
    set("units", o.units, 256);
    set("layers", o.layers, 4);
    set("batch", o.batch, 32);
    set("steps", o.steps, 128);
    set("clip", o.clip, 1);
    o.optimizer.set_default(options, "adam_w");
}

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string net = "recurrent", layout(to_string(o.layout));
    std::string tokens(to_string(o.tokens)), cell(to_string(o.cell));
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("data", options.path(o.data, "PATH"),
         "a text file, whose last tenth is used for validation and testing; or a folder of three files with "
         "train, valid and test in their names; plain or .gz; default: the included text")
        ("net", options.value(net), "recurrent, or gpt for a transformer")
        ("tokens", options.value(tokens),
         "words, spaces (split at spaces only, as in Penn Treebank files), characters or bytes")
        ("tokenizer", options.path(o.tokenizer, "PATH"),
         "the tokens of a byte-pair encoding instead: a tokenizer.json, or a folder with it or with "
         "vocab.json and merges.txt")
        ("model", options.path(o.model, "FOLDER"),
         "fine-tune a GPT-2 or Llama from Hugging Face: config.json, model.safetensors and the tokenizer; "
         "needs a smaller --lr, such as 3e-5")
        ("min-count", options.value(o.min_count),
         "replace words that occur fewer than N times with <unk>")
        ("vocabulary", po::value(&o.vocabulary)->value_name("N"), "use only the N most frequent words")
        ("sentences", po::bool_switch(&o.sentences),
         "treat each line as a separate text, instead of one running text")
        ("cell", options.value(cell), "lstm, or rnn for a simple recurrent net (Elman)")
        ("layout", options.value(layout),
         "of a gpt: llama (rotary positions, RMS normalization, SwiGLU), or gpt2")
        ("units", options.value(o.units), "units per layer; gpt: 256")
        ("layers", options.value(o.layers), "number of layers; gpt: 4")
        ("heads", options.value(o.heads), "attention heads of a gpt")
        ("kv-heads", po::value(&o.kv_heads)->value_name("N"),
         "heads of keys and values, which attention heads share; default: as many")
        ("dropout", options.value(o.dropout), "dropout ratio between layers")
        ("batch", options.value(o.batch), "texts per minibatch; gpt: 32")
        ("accumulate", options.value(o.accumulate), "minibatches per step, whose gradients add up")
        ("steps", options.value(o.steps),
         "length of truncated backpropagation in tokens; with --sentences: the maximum length of a line; "
         "of a gpt: the context, 128")
        ("bfloat16", po::bool_switch(&o.bfloat16),
         "compute products in bfloat16 where the processor is faster in it")
        ("float16", po::bool_switch(&o.float16),
         "compute products in float16 where the processor is faster in it, with adaptive loss scaling")
        ("ema", po::value(&o.ema)->value_name("DECAY"),
         "evaluate and save exponential moving averages of the parameters, such as 0.999")
        ("epochs", options.value(o.epochs), "passes over the text")
        ("max-steps", po::value(&o.max_steps)->value_name("N"), "stop after at most N steps")
        ("clip", options.value(o.clip),
         "maximum global norm of the gradients (gradient clipping); gpt: 1")
        ("sample", po::value(&o.sample)->value_name("N"), "generate N tokens after each epoch")
        ("prompt", po::value(&o.prompt), "beginning of the generated text");
    // clang-format on
    o.sampling.add_to(options);
    o.optimizer.add_to(options);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    options.require(net == "recurrent" || net == "gpt", "net", "recurrent or gpt", net);
    if (!o.model.empty() && !options.given("net")) net = "gpt";
    o.gpt = net == "gpt";
    try {
        o.tokens = tokens_from_string(tokens);
        o.cell = models::cell_from_string(cell);
        o.layout = models::layout_from_string(layout);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    for (const char* option : {"layout", "heads", "kv-heads", "model"})
        options.require(o.gpt || !options.given(option), option, "--net gpt", net);
    for (const char* option : {"cell", "sentences"})
        options.require(!o.gpt || !options.given(option), option, "--net recurrent", net);
    for (const char* option : {"tokens", "min-count", "vocabulary", "sentences"})
        options.require_without("tokenizer", option);
    for (const char* option : {"tokenizer", "tokens", "min-count", "vocabulary", "sentences",
                               "layout", "units", "layers", "heads", "kv-heads"})
        options.require_without("model", option);
    for (const char* option : {"bfloat16", "double-buffering"})
        options.require_without("float16", option);
    for (const char* option : {"accumulate", "float16"})
        options.require_without("micro-batches", option);
    if (o.gpt) set_gpt_defaults(options, o);
    o.optimizer.check(options);
    options.require_at_least(1, {{"min-count", o.min_count},
                                 {"units", o.units},
                                 {"layers", o.layers},
                                 {"heads", o.heads},
                                 {"accumulate", o.accumulate},
                                 {"batch", o.batch},
                                 {"steps", o.steps}});
    if (options.given("kv-heads")) options.require_at_least("kv-heads", o.kv_heads, 1);
    if (options.given("vocabulary")) options.require_at_least("vocabulary", o.vocabulary, 1);
    if (options.given("max-steps")) options.require_at_least("max-steps", o.max_steps, 1);
    if (options.given("sample")) options.require_at_least("sample", o.sample, 1);
    options.require_at_least("epochs", o.epochs, 0);
    options.require_positive("clip", o.clip);
    options.require(!options.given("ema") || (o.ema > 0 && o.ema < 1), "ema", "above 0, below 1",
                    o.ema);
    o.sampling.check(options);
    options.require(o.dropout >= 0 && o.dropout < 1, "dropout", "0 or more, below 1", o.dropout);
    options.require_with("prompt", "sample");
    for (const char* option : SamplingOptions::names) options.require_with(option, "sample");
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-lm", [&] {
        Program program("catena-train-lm",
                        "Trains a language model to predict the next word of a text.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        // The state of a recurrent net has a row for each text of a process, not of its parts.
        ProgramOptions::require(
            options.gpt || options.sentences ||
                program.processes.micro_batches() == program.processes.communicator().size(),
            "micro-batches", "the number of processes for running text with --net recurrent",
            program.processes.micro_batches());
        Corpus corpus = load_corpus(options);
        for (const std::string& word : corpus.vocabulary.missing(options.prompt))
            program.print(
                fmt::format("note: the vocabulary does not contain '{}' of the prompt", word));
        program.print(
            fmt::format("text: {} ({} {} to train, {} to validate, {} to test), vocabulary of {}",
                        corpus.path.string(), corpus.train.size(), corpus.vocabulary.unit(),
                        corpus.valid.size(), corpus.test.size(), corpus.vocabulary.size()));
        Training training(options, program, std::move(corpus));
        program.snapshots.resume(training);
        program.print(fmt::format("net: {}, {}, on {}", training.description(),
                                  options.optimizer.name(), device.name()));
        return training.run(program, options.epochs);
    });
}
