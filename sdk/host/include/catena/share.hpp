// Share: the part of each minibatch that belongs to this process.
#pragma once

#include <cstdint>

namespace catena {

// The items begin .. end - 1.
struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const noexcept { return end - begin; }
};

// Part i of n items in parts whose sizes differ by at most one: n i / parts .. n (i + 1) / parts.
constexpr Range part_of(std::int64_t n, std::int64_t i, std::int64_t parts) noexcept {
    return {n * i / parts, n * (i + 1) / parts};
}

// Several processes (ranks) read the same minibatches, and each makes only its part. Minibatches
// and their order are those of a single process.
struct Share {
    std::int64_t rank = 0;  // of this process
    std::int64_t size = 1;  // processes
    // Parts of a minibatch, a multiple of size; 0: size. next() returns one of this process's.
    std::int64_t parts = 0;
};

// For classes that read minibatches of all processes. State is that of whole minibatches, so it can
// be loaded with another Share; save it after the last part of a minibatch.
class SharedReader {
public:
    // Throws InvalidError unless 0 <= rank < size and parts is a multiple of size.
    void set_share(const Share& share);
    const Share& share() const noexcept { return share_; }
    // The factor of the gradients of the mean loss of the part that next() has returned, so that
    // their mean over all parts is the gradient of the mean over the minibatch: its items times
    // parts / items of the minibatch. 0 for an empty part.
    double weight() const noexcept { return weight_; }
    // The items of that minibatch, in all its parts; text is counted in tokens.
    std::int64_t all_items() const noexcept { return all_items_; }

protected:
    SharedReader() = default;
    // The range of n rows that the next part has.
    Range part(std::int64_t n) const { return part_of(n, share_.rank * own() + part_, parts()); }
    // Ends next(): whether that was this process' last part of the minibatch.
    bool end_part(std::int64_t items, std::int64_t all_items);
    // Moves by n items in an epoch of `size`. At its end the next one begins.
    static void advance(std::int64_t& position, std::int64_t n, std::int64_t size,
                        std::int64_t& epoch) {
        position += n;
        if (position < size) return;
        position = 0;
        ++epoch;
    }
    // Throws InvalidError between the parts of a minibatch. Called by visit().
    void require_whole(const char* reader) const;

    std::int64_t parts() const noexcept { return share_.parts ? share_.parts : share_.size; }

private:
    std::int64_t own() const noexcept { return parts() / share_.size; }

    Share share_;
    std::int64_t part_ = 0;  // of this process, in the current minibatch
    double weight_ = 1;
    std::int64_t all_items_ = 0;
};

}  // namespace catena
