// Pieces of texts for language models: what was read, and what came next.
#pragma once

#include <catena/core/array.hpp>
#include <catena/visitor.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace catena {

// Several sequences, packed a step after the other: rows[s] of them go on at step s, the first ones
// (batch_sizes of PyTorch's PackedSequence).
struct TextBatch {
    Array x;                         // int32 (sum of rows,): tokens
    Array t;                         // the token after each
    std::vector<std::int64_t> rows;  // never more than before
    bool begins;                     // what was read before has nothing to do with it

    std::int64_t size() const { return x.size(); }  // tokens
};

// Reads tokens, epoch after epoch. What is read follows from the state alone. Not for several
// threads at once.
class TextReader : public Visitable {
public:
    // The next piece; new arrays.
    virtual TextBatch next() = 0;
    // Tokens that an epoch predicts; those of this epoch so far; epochs completed.
    virtual std::int64_t size() const = 0;
    virtual std::int64_t position() const = 0;
    std::int64_t epoch() const noexcept { return epoch_; }

protected:
    std::int64_t epoch_ = 0;
};

// Running text: it is cut into batch_size streams of equal length, which are read side by side, `steps`
// tokens at a time. A model that keeps its state from piece to piece reads each stream as a whole, from
// where a piece `begins`. The few tokens that do not come out even are left out.
class RunningText final : public TextReader {
public:
    // device: where pieces go; none means Device::current(). Throws ShapeError unless batch_size and
    // steps are at least 1 and there are two tokens for each stream.
    RunningText(std::vector<std::int32_t> tokens, std::int64_t batch_size, std::int64_t steps,
                Device device = {});

    TextBatch next() override;
    std::int64_t size() const override { return length_ * batch_size_; }
    std::int64_t position() const override { return position_ * batch_size_; }
    void visit(Visitor& visitor) override;

private:
    std::vector<std::int32_t> tokens_;
    std::int64_t batch_size_;
    std::int64_t steps_;
    Device device_;
    std::int64_t length_;  // of a stream: pairs of a token and its next
    std::int64_t position_ = 0;
};

// Sentences, each for itself: those between end tokens, which every one begins after and ends with.
// Batches are of sentences of about the same length, in an order that changes with each epoch.
class Sentences final : public TextReader {
public:
    // Sentences longer than `longest` are cut. Throws ShapeError if there is none, or unless batch_size
    // and longest are at least 1.
    Sentences(std::vector<std::int32_t> tokens, std::int32_t end, std::int64_t batch_size,
              std::int64_t longest, std::uint64_t seed = 0, Device device = {});

    TextBatch next() override;
    std::int64_t size() const override { return size_; }
    std::int64_t position() const override { return position_; }
    void visit(Visitor& visitor) override;

private:
    struct Sentence {
        std::size_t begin;  // of what it predicts
        std::int64_t length;
    };
    void order_epoch();

    std::vector<std::int32_t> tokens_;
    std::vector<Sentence> sentences_;
    std::int32_t end_;
    std::int64_t batch_size_, longest_;
    std::uint64_t seed_;
    Device device_;
    std::int64_t size_;
    std::int64_t batch_ = 0;     // of this epoch
    std::int64_t position_ = 0;  // tokens of the batches before it
    std::int64_t ordered_epoch_ = -1;
    std::uint64_t ordered_seed_ = 0;
    std::vector<std::vector<std::size_t>> batches_;
};

}  // namespace catena
