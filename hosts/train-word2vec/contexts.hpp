// Places in a text, with the words around them.
#pragma once

#include <catena/core/array.hpp>
#include <catena/visitor.hpp>

// The words that are learned from: frequent ones are left out with a probability that grows with how
// frequent they are, 1 - sqrt(share / frequency). The same for the same seed.
std::vector<std::int32_t> subsample(std::span<const std::int32_t> text,
                                    std::span<const std::int64_t> counts, double share,
                                    std::uint64_t seed);

// Minibatches of places in random order, each with as many words on both sides, a number that is drawn
// for each minibatch. The state is (seed, epoch, position) alone.
class Contexts final : public catena::Visitable {
public:
    struct Batch {
        catena::Array center;    // (N,), int32
        catena::Array contexts;  // (N, 2 k), 1 <= k <= window
    };

    // Throws ShapeError unless there are more than 2 window words.
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
