// catena-train-word2vec: trains word vectors and finds similar words.
#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/models/word_vectors.hpp>
#include <catena/trainer.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

using namespace catena;
namespace po = boost::program_options;

namespace {

struct Options {
    std::filesystem::path data;
    Tokens tokens = Tokens::words;
    std::int64_t min_count = 5;
    double subsample = 1e-3;
    models::WordVectors::Kind model = models::WordVectors::Kind::skip_gram;
    std::int64_t units = 100;
    std::int64_t window = 5;
    std::int64_t batch = 500;
    std::int64_t epochs = 10;
    OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 0.5}}};
    std::vector<std::string> nearest;
    std::int64_t top = 10;
    std::filesystem::path vectors;
};

WordTree huffman_tree(const std::vector<std::int64_t>& counts) {
    std::map<std::int64_t, std::int64_t> by_word;
    for (std::size_t i = 0; i < counts.size(); ++i)
        by_word[static_cast<std::int64_t>(i)] = counts[i];
    return create_huffman_tree(by_word);
}

// Returns the words to train on: skips each word with probability 1 - sqrt(share / frequency), so
// that the most frequent words are skipped most often. Skips the same words for the same seed.
std::vector<std::int32_t> subsample(std::span<const std::int32_t> text,
                                    std::span<const std::int64_t> counts, double share,
                                    std::uint64_t seed) {
    if (share == 0) return {text.begin(), text.end()};
    Generator generator(seed ^ 0x73756273616d706cu);
    std::vector<std::int32_t> kept;
    for (const std::int32_t word : text) {
        const double frequency = static_cast<double>(counts[static_cast<std::size_t>(word)]) /
                                 static_cast<double>(text.size());
        if (generator.uniform() < std::sqrt(share / frequency)) kept.push_back(word);
    }
    return kept;
}

// The words of a text that are in the vocabulary, without rare words.
struct WordsOfText {
    WordsOfText(const TextPieces& text, const Options& how)
        : vocabulary(Vocabulary::of(text, how.tokens, how.min_count)),
          words(vocabulary.encode(text)),
          counts(static_cast<std::size_t>(vocabulary.size())) {
        std::erase(words, vocabulary.unknown_id());
        for (const std::int32_t word : words) ++counts[static_cast<std::size_t>(word)];
    }

    Vocabulary vocabulary;
    std::vector<std::int32_t> words;
    std::vector<std::int64_t> counts;  // one count per word of the vocabulary
};

// Minibatches of positions in random order. Each draws the number of context words on each side.
class Contexts final : public Visitable, public SharedReader {
public:
    struct Batch {
        Array center;    // (N,), int32
        Array contexts;  // (N, 2 k), 1 <= k <= window
    };

    // Throws ShapeError unless the text has more than 2 * window words.
    Contexts(std::vector<std::int32_t> text, std::int64_t window, std::int64_t batch_size,
             std::uint64_t seed, Device device)
        : text_(std::move(text)),
          window_(window),
          batch_size_(batch_size),
          seed_(seed),
          device_(device),
          places_(0) {
        if (window_ > (std::ssize(text_) - 1) / 2)
            fail<ShapeError>(
                "[Contexts] text: expected more training words than twice the window of {}, got {}",
                window_, text_.size());
        places_ = std::ssize(text_) - 2 * window_;
    }
    Batch next() {
        order_epoch();
        // Draws the window of each minibatch, so that near, more informative words are used more often.
        Generator generator(seed_ ^ 0x77696e646f77u, static_cast<std::uint64_t>(epoch_) << 32 |
                                                         static_cast<std::uint64_t>(position_));
        const auto k =
            static_cast<std::int64_t>(generator.below(static_cast<std::uint64_t>(window_))) + 1;
        const std::int64_t n = std::min(batch_size_, places_ - position_);
        const Range own = part(n);
        std::vector<std::int32_t> center, contexts;
        for (std::int64_t i = position_ + own.begin; i < position_ + own.end; ++i) {
            const std::int64_t place = order_[static_cast<std::size_t>(i)];
            center.push_back(text_[static_cast<std::size_t>(place)]);
            for (std::int64_t offset = -k; offset <= k; ++offset) {
                if (offset != 0)
                    contexts.push_back(text_[static_cast<std::size_t>(place + offset)]);
            }
        }
        if (end_part(own.size(), n)) advance(position_, n, places_, epoch_);
        return {Array::from(center, {own.size()}, device_),
                Array::from(contexts, {own.size(), 2 * k}, device_)};
    }

    std::int64_t size() const noexcept { return places_; }
    std::int64_t epoch() const noexcept { return epoch_; }
    std::int64_t position() const noexcept { return position_; }
    void visit(Visitor& visitor) override {
        require_whole("Contexts");
        visitor.require("words", std::ssize(text_)).require("window", window_);
        visitor.require("batch_size", batch_size_);
        visitor("seed", seed_).within("epoch", epoch_, 0, most_epochs);
        visitor.within("position", position_, 0, places_ - 1);
    }

private:
    void order_epoch() {
        if (ordered_ == std::pair(epoch_, seed_)) return;
        Generator generator(seed_ ^ 0x636f6e7465787473u, static_cast<std::uint64_t>(epoch_) << 32);
        order_.resize(static_cast<std::size_t>(places_));
        std::iota(order_.begin(), order_.end(), window_);
        generator.shuffle(order_);
        ordered_ = {epoch_, seed_};
    }

    std::vector<std::int32_t> text_;
    std::int64_t window_, batch_size_;
    std::uint64_t seed_;
    Device device_;
    std::int64_t places_;
    std::int64_t epoch_ = 0, position_ = 0;
    std::pair<std::int64_t, std::uint64_t> ordered_{-1, 0};  // the epoch and seed of order_
    std::vector<std::int64_t> order_;
};

class Training final : public Trainer {
public:
    Training(const Options& how, const Program& program, WordsOfText text)
        : Trainer(how.optimizer, program,
                  {.unit = "words", .scores = {"loss"}, .columns = {"train loss"}}),
          vocabulary(std::move(text.vocabulary)),
          model(vocabulary.size(), how.units, huffman_tree(text.counts), how.model),
          contexts(subsample(text.words, text.counts, how.subsample,
                             static_cast<std::uint64_t>(program.seed())),
                   how.window, how.batch, static_cast<std::uint64_t>(program.seed()),
                   program.devices()[0]),
          options(how) {
        contexts.set_share(share());
        set_up(model);
    }

    void visit(Visitor& v) override {
        Trainer::visit(v);
        v.require("about/net", "word vectors").require("about/kind", to_string(options.model));
        v.require("options/subsample", fmt::format("{}", options.subsample));
        v("vocabulary", vocabulary)("model", model)("contexts", contexts);
    }

    Vocabulary vocabulary;
    models::WordVectors model;
    Contexts contexts;

private:
    void step() override {
        const auto [center, around] = contexts.next();
        optimizer->cleargrads();
        if (center.size() == 0) return optimizer->update();  // there are fewer words than processes
        Variable loss = model.loss(center, around);
        draw_once(loss);
        const Array value = loss.data();
        loss = weigh(loss, contexts.weight());
        std::move(loss).backward();
        optimizer->update();
        score.add({value}, static_cast<double>(center.size()));
    }
    Place place() const override {
        return {contexts.epoch(), contexts.position(), contexts.size()};
    }
    const Link& net() const override { return model; }
    Report report(const Program&) override {
        const double loss = score.mean("loss");
        return {fmt::format("loss {:.4f}", loss), {loss}};
    }
    // --vectors and --nearest.
    void complete(const Program& program) override {
        if (!options.vectors.empty() && program.processes.is_first()) write_vectors();
        for (const std::string& word : options.nearest) print_nearest(program, word);
    }
    void write_vectors() const {
        const Array& W = model.embed.W.data();
        const std::vector<float> values = W.to_vector<float>();
        const auto units = static_cast<std::size_t>(W.shape()[1]);
        const std::int64_t unknown = vocabulary.unknown_id();  // its vector is not trained
        std::string text = fmt::format("{} {}\n", W.shape()[0] - 1, units);
        for (std::int64_t id = 0; id < W.shape()[0]; ++id) {
            if (id == unknown) continue;
            const auto own = std::span(values).subspan(static_cast<std::size_t>(id) * units, units);
            text += fmt::format("{} {}\n", vocabulary.word(id), fmt::join(own, " "));
        }
        write_file(options.vectors, text);
    }
    void print_nearest(const Program& program, const std::string& word) const {
        program.print(fmt::format("{}:", word));
        std::int64_t shown = 0;
        for (const auto& [id, cosine] :
             models::nearest_words(model.embed.W.data(), vocabulary.id(word), options.top + 1)) {
            if (id != vocabulary.unknown_id() && shown++ < options.top)
                program.print(fmt::format("  {:.4f}  {}", cosine, vocabulary.word(id)));
        }
    }

    Options options;
};

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::string tokens(to_string(o.tokens)), model(to_string(o.model));
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("data", options.path(o.data),
         "a text file, plain or .gz; default: the included text")
        ("tokens", options.value(tokens),
         "words, or spaces (split at spaces only)")
        ("min-count", options.value(o.min_count), "skip rarer words")
        ("subsample", options.value(o.subsample),
         "randomly skip words that are more frequent than this fraction of the text; 0: skip none")
        ("model", options.value(model),
         "skip-gram (predict from each context word) or cbow (predict from all of them)")
        ("units", options.value(o.units), "dimensions of the vectors")
        ("window", options.value(o.window), "maximum number of context words on each side")
        ("batch", options.value(o.batch), "positions per minibatch")
        ("epochs", options.value(o.epochs), "passes over the text")
        ("nearest", po::value(&o.nearest)->value_name("WORD"),
         "at the end, print the words most similar to WORD; may be repeated")
        ("top", options.value(o.top), "number of words that --nearest prints")
        ("vectors", options.per_process(options.path(o.vectors)),
         "write all vectors in word2vec's text format, one word and its numbers per line");
    // clang-format on
    o.optimizer.add_to(options);
    program.add_training_options();
    if (!program.parse(argc, argv)) return false;
    try {
        o.tokens = tokens_from_string(tokens);
        o.model = models::word_vectors_from_string(model);
    } catch (const InvalidError& error) {
        throw po::error(error.what());
    }
    options.require(o.tokens != Tokens::characters, "tokens", "words or spaces", tokens);
    o.optimizer.check(options);
    options.require_at_least(1, {{"min-count", o.min_count},
                                 {"units", o.units},
                                 {"window", o.window},
                                 {"batch", o.batch},
                                 {"top", o.top}});
    options.require_at_least("epochs", o.epochs, 0);
    options.require(o.subsample >= 0 && o.subsample <= 1, "subsample", "0 to 1", o.subsample);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-train-word2vec", [&] {
        Program program("catena-train-word2vec",
                        "Trains a vector for each word of a text from the words around it, with a "
                        "hierarchical softmax over a Huffman tree of the words.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        if (!options.vectors.empty()) require_writable(options.vectors);
        const Device device = program.start();
        const using_device scope(device);
        const std::filesystem::path file =
            options.data.empty() ? shipped("shakespeare/shakespeare.txt.gz") : options.data;
        WordsOfText words(text_pieces(file), options);
        for (const std::string& word : options.nearest) {
            if (!words.vocabulary.contains(word))
                fail<DataError>(
                    "[train-word2vec] --nearest: expected one of the {} words, got '{}'",
                    words.vocabulary.size(), word);
        }
        Training training(options, program, std::move(words));
        program.snapshots.resume(training);
        program.print(fmt::format("text: {} ({} positions, vocabulary of {} words)", file.string(),
                                  training.contexts.size(), training.vocabulary.size()));
        program.print(fmt::format("net: {} of {} units, {} parameters, {}, on {}",
                                  to_string(options.model), options.units,
                                  training.model.count_parameters(), options.optimizer.name(),
                                  device.name()));
        return training.run(program, options.epochs);
    });
}
