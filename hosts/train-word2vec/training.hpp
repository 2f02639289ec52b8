// Options, places in a text and the words around them, a training step, and a snapshot's content.
#pragma once

#include <catena/catena.hpp>
#include <catena/models/word_vectors.hpp>
#include <catena/trainer.hpp>

struct Options {
    std::filesystem::path data;
    catena::Tokens tokens = catena::Tokens::words;
    std::int64_t min_count = 5;
    double subsample = 1e-3;
    catena::models::WordVectors::Kind model = catena::models::WordVectors::Kind::skip_gram;
    std::int64_t units = 100;
    std::int64_t window = 5;
    std::int64_t batch = 500;
    std::int64_t epochs = 10;
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 0.5}}};
    std::vector<std::string> nearest;
    std::int64_t top = 10;
    std::filesystem::path vectors;
};

// The words of a text that are in the vocabulary, without rare words.
struct WordsOfText {
    WordsOfText(const catena::TextPieces& text, const Options& how);

    catena::Vocabulary vocabulary;
    std::vector<std::int32_t> words;
    std::vector<std::int64_t> counts;  // one count per word of the vocabulary
};

// Returns the words to train on: skips each word with probability 1 - sqrt(share / frequency), so
// that the most frequent words are skipped most often. Skips the same words for the same seed.
std::vector<std::int32_t> subsample(std::span<const std::int32_t> text,
                                    std::span<const std::int64_t> counts, double share,
                                    std::uint64_t seed);

// Makes minibatches of positions in random order. Each minibatch draws the number of context words
// on each side. The state is (seed, epoch, position).
class Contexts final : public catena::Visitable, public catena::SharedReader {
public:
    struct Batch {
        catena::Array center;    // (N,), int32
        catena::Array contexts;  // (N, 2 k), 1 <= k <= window
    };

    // Throws ShapeError unless the text has more than 2 * window words.
    Contexts(std::vector<std::int32_t> text, std::int64_t window, std::int64_t batch_size,
             std::uint64_t seed, catena::Device device);
    Batch next();

    std::int64_t size() const noexcept { return places_; }
    std::int64_t epoch() const noexcept { return epoch_; }
    std::int64_t position() const noexcept { return position_; }
    void visit(catena::Visitor& visitor) override;

private:
    void order_epoch();

    std::vector<std::int32_t> text_;
    std::int64_t window_, batch_size_;
    std::uint64_t seed_;
    catena::Device device_;
    std::int64_t places_;
    std::int64_t epoch_ = 0, position_ = 0;
    std::pair<std::int64_t, std::uint64_t> ordered_{-1, 0};  // the epoch and seed of order_
    std::vector<std::int64_t> order_;
};

class Training final : public catena::Trainer {
public:
    Training(const Options& how, const catena::Program& program, WordsOfText text);

    void visit(catena::Visitor& v) override;

    catena::Vocabulary vocabulary;
    catena::models::WordVectors model;
    Contexts contexts;

private:
    void step() override;
    Place place() const override {
        return {contexts.epoch(), contexts.position(), contexts.size()};
    }
    const catena::Link& net() const override { return model; }
    Report report(const catena::Program&) override;
    void complete(const catena::Program& program) override;  // --vectors and --nearest
    void write_vectors() const;
    void print_nearest(const catena::Program& program, const std::string& word) const;

    Options options;
};
