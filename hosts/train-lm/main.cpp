// catena-train-lm: trains a language model on any text.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/models.hpp>
#include <catena/read_file.hpp>
#include <catena/sampling_options.hpp>
#include <catena/trainer.hpp>

#include <fmt/format.h>

#include <cmath>

using namespace catena;
using models::Gpt;
using models::LanguageModel;
namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace {

struct Options {
    std::filesystem::path data;
    bool gpt = false;  // else recurrent
    Tokens tokens = Tokens::words;
    std::filesystem::path tokenizer;  // of byte pairs; empty: tokens
    std::filesystem::path model;      // a pretrained gpt; empty: initial weights
    std::int64_t min_count = 1;
    std::int64_t vocabulary = 0;  // 0: all words
    bool sentences = false;
    LanguageModel::Cell cell = LanguageModel::Cell::lstm;
    Gpt::Layout layout = Gpt::Layout::llama;
    std::int64_t units = 200;
    std::int64_t layers = 1;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 0;  // 0: heads
    double dropout = 0;
    std::int64_t batch = 20;
    std::int64_t accumulate = 1;  // minibatches in a step
    std::int64_t steps = 35;
    bool bfloat16 = false, float16 = false;
    double ema = 0;  // decay of averages of the parameters; 0: none
    std::int64_t epochs = 5;
    std::int64_t max_steps = 0;  // 0: no limit besides epochs
    OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 1}, {"adam_w", 0.002}}};
    double clip = 5;
    std::int64_t sample = 0;
    std::string prompt;
    SamplingOptions sampling;
};

// The text as token ids.
struct Corpus {
    std::filesystem::path path;
    models::Tokenizer vocabulary;  // of words: built from the training part
    std::vector<std::int32_t> train, valid, test;
};

// Returns the only file in the folder whose name contains `part`.
fs::path find_part(const fs::path& folder, const std::string& part) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().filename().string().find(part) != std::string::npos)
            found.push_back(entry.path());
    }
    if (found.size() != 1)
        fail<DataError>("[corpus] {}: expected one file with '{}' in its name, got {}",
                        folder.string(), part, found.size());
    return found[0];
}

std::uint64_t size_of(const TextPieces& text) {
    std::uint64_t size = 0;
    text([&](std::string_view piece) { size += piece.size(); });
    return size;
}

// Returns the offsets at which these shares of a text end: after a line break, or else after a
// space, if one is near, or else before the next character. Reads the text once.
std::array<std::uint64_t, 2> cuts(const TextPieces& text, std::uint64_t size,
                                  std::array<double, 2> shares) {
    constexpr std::uint64_t none = ~std::uint64_t{0};
    struct Cut {
        std::uint64_t target, near, line = none, word = none, character = none;
    };
    std::array<Cut, 2> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto target = static_cast<std::uint64_t>(shares[i] * static_cast<double>(size));
        all[i] = {target, target + size / 40};
    }
    const auto continues = [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    };
    std::uint64_t at = 0;
    part_of(text, 0, all.back().near + 1)([&](std::string_view piece) {
        for (Cut& cut : all) {
            for (std::uint64_t i = std::max(at, cut.target); i < at + piece.size() && i <= cut.near;
                 ++i) {
                const char c = piece[i - at];
                if (c == '\n' && cut.line == none) cut.line = i + 1;
                if (c == ' ' && cut.word == none) cut.word = i + 1;
                if (!continues(c) && cut.character == none) cut.character = i;
            }
        }
        at += piece.size();
    });
    std::array<std::uint64_t, 2> ends;
    std::ranges::transform(all, ends.begin(), [&](const Cut& cut) {
        return cut.line != none   ? cut.line
               : cut.word != none ? cut.word
                                  : std::min(cut.character, size);
    });
    ends[1] = std::max(ends[0], ends[1]);  // may be reversed in a text of a few bytes
    return ends;
}

// Reads a text of up to 64 MiB once and keeps it; a longer text is read again in each call.
TextPieces held_if_short(const TextPieces& pieces) {
    constexpr std::uint64_t most = std::uint64_t{1} << 26;
    const auto text = std::make_shared<std::string>();
    part_of(pieces, 0, most + 1)([&](std::string_view piece) { *text += piece; });
    if (text->size() > most) return pieces;
    return [text](const auto& take) { take(*text); };
}

// Returns the token that ends each line. Throws DataError if the vocabulary does not contain it.
std::int32_t end_of(const models::Tokenizer& vocabulary) {
    const std::int32_t end = vocabulary.end();
    if (end < 0)
        fail<DataError>(
            "[corpus] --sentences: expected a vocabulary of {} words that includes the end of a "
            "line, got one without",
            vocabulary.size());
    return end;
}

// A reader for training, or for validation, which reads everything in order.
std::unique_ptr<TextReader> open(const Corpus& corpus, const std::vector<std::int32_t>& tokens,
                                 const Options& options, std::int64_t batch, std::uint64_t seed,
                                 Device device) {
    if (options.sentences)
        return std::make_unique<Sentences>(tokens, end_of(corpus.vocabulary), batch, options.steps,
                                           seed, device);
    if (options.gpt && &tokens == &corpus.train)
        return std::make_unique<RandomWindows>(tokens, batch, options.steps, seed, device);
    return std::make_unique<RunningText>(tokens, batch, options.steps, device);
}

std::variant<LanguageModel, Gpt> make_model(const Options& o, std::int64_t words) {
    if (!o.gpt) return LanguageModel({words, o.units, o.layers, o.cell, o.dropout});
    if (!o.model.empty()) {
        Gpt model = models::load_gpt(o.model, o.dropout);
        if (model.sizes().words < words)
            fail<DataError>("[train-lm] {}: expected at most {} tokens, as the net has, got {}",
                            o.model.string(), model.sizes().words, words);
        return model;
    }
    return Gpt({.words = words,
                .context = o.steps,
                .units = o.units,
                .layers = o.layers,
                .heads = o.heads,
                .kv_heads = o.kv_heads,
                .layout = o.layout,
                .dropout = o.dropout});
}

// Throws DataError unless the model to fine-tune is a folder of the form that load_gpt() reads.
void require_model(const fs::path& folder) {
    if (!fs::is_directory(folder)) {
        const std::string kind = file_kind(folder);
        fail<DataError>(
            "[train-lm] {}: expected a folder with config.json, model.safetensors and the "
            "tokenizer, got {}",
            folder.string(), kind.empty() ? "a file" : kind);
    }
    require_regular("train-lm", folder / "config.json", "a JSON object");
}

// Loads the text of --data, or the one installed with the program. Throws DataError.
Corpus load_corpus(const Options& options) {
    if (!options.model.empty()) require_model(options.model);
    Corpus corpus{options.data.empty() ? shipped("shakespeare/shakespeare.txt.gz") : options.data,
                  {},
                  {},
                  {},
                  {}};
    TextPieces train, valid, test;
    if (fs::is_directory(corpus.path)) {
        train = held_if_short(text_pieces(find_part(corpus.path, "train")));
        valid = held_if_short(text_pieces(find_part(corpus.path, "valid")));
        test = held_if_short(text_pieces(find_part(corpus.path, "test")));
    } else {
        const TextPieces text = held_if_short(text_pieces(corpus.path));
        const std::uint64_t size = size_of(text);
        if (size == 0)
            fail<DataError>("[corpus] {}: expected text, got none", corpus.path.string());
        const auto [first, second] = cuts(text, size, {0.9, 0.95});
        train = part_of(text, 0, first);
        const TextPieces rest = held_if_short(part_of(text, first, size));
        valid = part_of(rest, 0, second - first);
        test = part_of(rest, second - first, size - first);
    }
    const fs::path& encoding = options.model.empty() ? options.tokenizer : options.model;
    corpus.vocabulary = encoding.empty()
                            ? models::Tokenizer(Vocabulary::of(
                                  train, options.tokens, options.min_count, options.vocabulary))
                            : models::Tokenizer(models::BytePairEncoding::load(encoding));
    corpus.train = corpus.vocabulary.encode(train);
    corpus.valid = corpus.vocabulary.encode(valid);
    corpus.test = corpus.vocabulary.encode(test);
    for (const auto* part : {&corpus.train, &corpus.valid, &corpus.test}) {
        if (part->size() < 2)
            fail<DataError>(
                "[corpus] {}: expected at least two tokens each for training, validation and "
                "testing, got {}, {} and {}",
                corpus.path.string(), corpus.train.size(), corpus.valid.size(), corpus.test.size());
    }
    return corpus;
}

class Training final : public Trainer {
public:
    Training(const Options& how, const Program& program, Corpus data)
        : Trainer(how.optimizer, program,
                  {.unit = std::string(data.vocabulary.unit()),
                   .scores = {"loss"},
                   .columns = {"train perplexity", "valid perplexity"}}),
          corpus(std::move(data)),
          options(how),
          model(make_model(how, corpus.vocabulary.size())),
          text(open(corpus, corpus.train, how, how.batch,
                    static_cast<std::uint64_t>(program.seed()), program.devices()[0])),
          random(program.devices()[0]) {
        text->set_share(share());
        if (auto* recurrent = std::get_if<LanguageModel>(&model)) {
            std::vector<std::int64_t> counts(static_cast<std::size_t>(corpus.vocabulary.size()));
            for (const std::int32_t word : corpus.train) ++counts[static_cast<std::size_t>(word)];
            recurrent->start_from(counts);
            state = recurrent->begin(part_of(how.batch, share().rank, share().size).size());
        }
        set_up(link(), how.accumulate == 1);
        optimizer->add_hook([clip = how.clip](const Optimizer& o) { o.clip_grads(clip); });
        if (how.float16) loss_scale.emplace();
        if (how.ema > 0) averages.emplace(link(), how.ema);
        if (auto* adam = dynamic_cast<optimizers::AdamW*>(optimizer.get())) {
            adam->weight_decay_rate = 0.01 * adam->alpha;  // PyTorch's default
            // Decoupled decay is for matrices.
            if (how.gpt)
                adam->set_group([](const NamedParameter& p) { return p.variable.ndim() < 2; },
                                {.decay = 0});
        }
    }

    void visit(Visitor& v) override {
        Trainer::visit(v);
        if (!options.model.empty()) {
            v.require("about/net", "gpt");
            v.require("about/config", models::config_of(std::get<Gpt>(model)));
        } else if (options.gpt) {
            v.require("about/net", "gpt").require("about/layout", to_string(options.layout));
            v.require("about/context", options.steps).require("about/heads", options.heads);
            v.require("about/kv_heads", options.kv_heads > 0 ? options.kv_heads : options.heads);
        } else {
            v.require("about/net", "language model").require("about/cell", to_string(options.cell));
        }
        if (options.model.empty())
            v.require("about/units", options.units).require("about/layers", options.layers);
        v.require("about/dropout", fmt::format("{}", options.dropout));
        v.require("options/sentences", options.sentences);
        v.require("options/clip", fmt::format("{}", options.clip));
        if (options.accumulate > 1) v.require("options/accumulate", options.accumulate);
        if (options.bfloat16) v.require("options/bfloat16", "true");
        if (loss_scale) v.require("options/float16", "true")("loss_scale", *loss_scale);
        if (averages)
            v.require("options/ema", fmt::format("{}", options.ema))("model", *averages)("trained",
                                                                                         link());
        else v("model", link());
        v("vocabulary", corpus.vocabulary)("text", *text)("random", random);
        if (!options.sentences && !options.gpt) visit_state(v);
    }

    // A line about the net, for output.
    std::string description() const {
        const std::int64_t n = net().count_parameters();
        if (const auto* gpt = std::get_if<Gpt>(&model))
            return fmt::format("{} x {} {}, {} parameters", gpt->sizes().layers, gpt->sizes().units,
                               to_string(gpt->sizes().layout), n);
        return fmt::format("{} x {} {}, {} parameters", options.layers, options.units,
                           to_string(options.cell), n);
    }

    Corpus corpus;

private:
    Link& link() {
        return std::visit([](auto& net) -> Link& { return net; }, model);
    }
    // Calls evaluate() while the net has the averages, if there are any.
    template <class Evaluate>
    auto with_averages(const Evaluate& evaluate) {
        if (!averages) return evaluate();
        averages->swap();
        const std::shared_ptr<void> at_end(nullptr, [&](void*) { averages->swap(); });
        return evaluate();
    }
    // The mean loss of a minibatch. A recurrent net starts from `state` and updates it.
    Variable loss(const TextBatch& batch, LanguageModel::State& before) {
        const autocast scope(options.bfloat16  ? Dtype::bfloat16
                             : options.float16 ? Dtype::float16
                                               : Dtype::float32);
        if (auto* recurrent = std::get_if<LanguageModel>(&model)) {
            if (batch.begins) before = recurrent->begin(batch.rows[0]);
            return recurrent->loss(batch, before);
        }
        return std::get<Gpt>(model).loss(as_variable(batch.by_text(batch.x)),
                                         as_variable(batch.by_text(batch.t)));
    }
    // Trains on one minibatch, or on --accumulate of them. Gradients do not go back beyond it.
    // [step]
    void step() override {
        const std::int64_t t = optimizer->t();
        optimizer->cleargrads();
        double pieces = 0, steps = 0, parts = 0;
        do {
            const TextBatch batch = text->next();
            const auto length = static_cast<double>(batch.steps);
            const double part = static_cast<double>(text->all_items()) /
                                static_cast<double>(options.batch * options.steps);
            pieces += 1, steps += length, parts += part;
            if (batch.size() == 0) continue;  // there are fewer texts than processes
            const Variable mean = loss(batch, state);
            draw_once(mean);
            // Gradients of a recurrent net are sums over the steps. The last minibatch may be shorter.
            const double factor = options.accumulate > 1 ? part : options.gpt ? 1 : length;
            const Variable share = mean * (factor * text->weight());
            (loss_scale ? (*loss_scale)(share) : share).backward();
            state.unchain_backward();
            score.add({mean.data()}, static_cast<double>(batch.size()));
        } while (pieces < static_cast<double>(options.accumulate) && text->position() > 0);
        if (options.accumulate > 1)
            optimizer->scale_grads((options.gpt ? 1 : steps / pieces) / parts);
        if (!loss_scale) optimizer->update();
        else if (!loss_scale->update(*optimizer)) return;  // a gradient is not finite
        if (averages && optimizer->t() > t) averages->update();
    }
    // [/step]
    Place place() const override { return {text->epoch(), text->position(), text->size()}; }
    const Link& net() const override {
        return std::visit([](const auto& net) -> const Link& { return net; }, model);
    }
    Report report(const Program& program) override {
        const double trained = progress();
        const double loss = with_averages([&] { return mean_loss(program, corpus.valid); });
        const double valid = std::exp(loss);
        return {fmt::format("train perplexity {:.2f}  valid perplexity {:.2f} ({:.3f} nats)",
                            trained, valid, loss),
                {trained, valid}};
    }
    void reported(const Program& program) override {  // --sample
        if (options.sample > 0 && program.processes.is_first())
            with_averages([&] { write_sample(program); });
    }
    // The state has a row for each text of this process.
    void visit_state(Visitor& v) {
        if (share().size == 1) return void(v("state", state));
        const Range own = part_of(options.batch, share().rank, share().size);
        for (const auto& [name, list] : {std::pair("state/h", &state.h), {"state/c", &state.c}})
            for (std::size_t i = 0; i < list->size(); ++i) {
                const std::int64_t units = (*list)[i].shape()[1];
                Array rows = (*list)[i].data().reshape({-1});  // loading writes into it
                v.part(fmt::format("{}{}", name, i), rows, own.begin * units,
                       {options.batch, units});
            }
    }
    void write_sample(const Program& program) {
        const models::Tokenizer& tokens = corpus.vocabulary;
        std::vector<std::int32_t> sample = tokens.encode(options.prompt), ends;
        std::size_t before = 0;  // tokens that are not part of the text
        if (!options.model.empty()) {
            const auto beginning = tokens.beginning();
            sample.insert(sample.begin(), beginning.begin(), beginning.end());
            before = beginning.size();
            ends = models::load_end_tokens(options.model);
        }
        if (ends.empty()) ends = tokens.ends();
        if (options.gpt && sample.empty())  // a gpt needs a token before the first
            sample.push_back(std::max(tokens.end(), 0));
        auto generate =
            std::visit([&](auto& net) { return models::TextGenerator(net, sample); }, model);
        Generator generator(static_cast<std::uint64_t>(program.seed()),
                            static_cast<std::uint64_t>(text->epoch()) << 32);
        for (std::int64_t i = 0; i < options.sample; ++i) {
            program.stop_if_interrupted();
            const std::int32_t token = generate.next(options.sampling, generator);
            if (std::ranges::find(ends, token) != ends.end()) break;
            sample.push_back(token);
        }
        program.print(fmt::format("sample: {}", tokens.decode(std::span(sample).subspan(before))));
    }
    void complete(const Program& program) override {
        const double loss = with_averages([&] { return mean_loss(program, corpus.test); });
        program.print(fmt::format("test perplexity: {:.2f}", std::exp(loss)));
    }
    bool enough() const override {
        return options.max_steps > 0 && optimizer->t() >= options.max_steps;
    }
    double progress() const override { return std::exp(score.mean("loss")); }
    const char* progress_name() const override { return "perplexity"; }
    // Returns the mean loss, without dropout and without a graph. Throws Interrupted.
    double mean_loss(const Program& program, const std::vector<std::int32_t>& tokens) {
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        const auto batch_size = std::min<std::int64_t>(options.batch, std::ssize(tokens) / 2);
        const auto reader =
            open(corpus, tokens, options, batch_size, 0, net().parameters()[0].device());
        reader->set_share({share().rank, share().size});
        LanguageModel::State before;
        Summary losses{"loss"};
        while (reader->epoch() == 0) {
            program.stop_if_interrupted();
            const TextBatch batch = reader->next();
            if (batch.size() == 0) continue;
            losses.add({loss(batch, before).data()}, static_cast<double>(batch.size()));
        }
        return over_all(losses).mean("loss");
    }

    Options options;
    std::variant<LanguageModel, models::Gpt> model;
    std::optional<LossScale> loss_scale;               // --float16
    std::optional<ExponentialMovingAverage> averages;  // --ema
    std::unique_ptr<TextReader> text;
    LanguageModel::State state;  // between steps on running text
    RandomStream random;         // for dropout
};

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
