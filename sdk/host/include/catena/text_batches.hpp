// Minibatches of text for language models: tokens and the tokens that follow them.
#pragma once

#include <catena/share.hpp>
#include <catena/visitor.hpp>

namespace catena {

// Several sequences, packed step by step: the first rows[s] of them continue at step s (batch_sizes
// of PyTorch's PackedSequence).
struct TextBatch {
    Array x;                         // int32 (sum of rows,): tokens
    Array t;                         // the token that follows each
    std::vector<std::int64_t> rows;  // never increases
    bool begins;                     // unrelated to the previous piece
    std::int64_t steps = 0;          // those of the longest sequence, in the parts of all processes

    std::int64_t size() const { return x.size(); }  // tokens
    // x or t as (texts, steps). Throws ShapeError if the sequences differ in length.
    Array by_text(const Array& tokens) const;
};

// Reads tokens, epoch after epoch. The state alone determines what is read. With a Share, next()
// returns a part of the sequences, perhaps none; weight() counts tokens. Not thread-safe.
class TextReader : public Visitable, public SharedReader {
public:
    // Returns the next piece, as new arrays.
    virtual TextBatch next() = 0;
    // The numbers of tokens that an epoch predicts, of those read in it, and of completed epochs.
    virtual std::int64_t size() const = 0;
    virtual std::int64_t position() const = 0;
    std::int64_t epoch() const noexcept { return epoch_; }

protected:
    TextReader() = default;
    TextReader(std::vector<std::int32_t> tokens, std::int64_t batch_size, Device device)
        : tokens_(std::move(tokens)),
          batch_size_(batch_size),
          device_(device ? device : Device::current()) {}

    std::vector<std::int32_t> tokens_;
    std::int64_t batch_size_ = 0;
    Device device_;  // of pieces
    std::int64_t epoch_ = 0;
};

// Running text, divided into batch_size streams of equal length, which are read in parallel,
// `steps` tokens at a time. A model that keeps its state from piece to piece reads each stream as a
// whole, starting at a piece with `begins`. The remainder of the division is not used. next()
// throws InvalidError for a Share with several parts for a process, which would need a state each.
class RunningText final : public TextReader {
public:
    // device: where pieces are made, default Device::current(). Throws ShapeError unless batch_size
    // and steps are at least 1 and there are two tokens for each stream.
    RunningText(std::vector<std::int32_t> tokens, std::int64_t batch_size, std::int64_t steps,
                Device device = {});

    TextBatch next() override;
    std::int64_t size() const override { return length_ * batch_size_; }
    std::int64_t position() const override { return position_ * batch_size_; }
    void visit(Visitor& visitor) override;

private:
    std::int64_t steps_;
    std::int64_t length_;  // of a stream, in pairs of a token and its successor
    std::int64_t position_ = 0;
};

// Windows of running text in random order, for models without a state. Windows of one epoch do not
// overlap; each epoch cuts the text at other tokens. `begins` is true for every minibatch.
class RandomWindows final : public TextReader {
public:
    // Throws ShapeError unless batch_size and steps are at least 1 and there are steps + 1 tokens.
    RandomWindows(std::vector<std::int32_t> tokens, std::int64_t batch_size, std::int64_t steps,
                  std::uint64_t seed = 0, Device device = {});

    TextBatch next() override;
    std::int64_t size() const override { return windows_ * steps_; }
    std::int64_t position() const override { return position_ * steps_; }
    void visit(Visitor& visitor) override;

private:
    void order_epoch();

    std::int64_t steps_;
    std::uint64_t seed_;
    std::int64_t windows_;                                   // in an epoch
    std::int64_t position_ = 0;                              // windows read in this epoch
    std::pair<std::int64_t, std::uint64_t> ordered_{-1, 0};  // the epoch and seed of begins_
    std::vector<std::int64_t> begins_;
};

// Separate sentences, delimited by end tokens. Each starts after an end token and ends with one. A
// minibatch has sentences of similar length; the order changes with each epoch.
class Sentences final : public TextReader {
public:
    // Longer sentences are cut. Throws ShapeError for sizes below 1 and for no sentences.
    Sentences(std::vector<std::int32_t> tokens, std::int32_t end, std::int64_t batch_size,
              std::int64_t longest, std::uint64_t seed = 0, Device device = {});

    TextBatch next() override;
    std::int64_t size() const override { return size_; }
    std::int64_t position() const override { return position_; }
    void visit(Visitor& visitor) override;

private:
    struct Sentence {
        std::int64_t begin;  // of the token before the first one to predict
        std::int64_t length;
    };
    void order_epoch();

    std::vector<Sentence> sentences_;  // of tokens_, which begin and end with an end token
    std::int64_t longest_;
    std::uint64_t seed_;
    std::int64_t size_ = 0;
    std::int64_t batch_ = 0;                                 // in this epoch
    std::int64_t position_ = 0;                              // tokens in earlier batches
    std::pair<std::int64_t, std::uint64_t> ordered_{-1, 0};  // the epoch and seed of batches_
    std::vector<std::vector<std::size_t>> batches_;
};

}  // namespace catena
