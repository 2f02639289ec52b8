// Minibatches: shuffled minibatches of a data set in memory.
#pragma once

#include <catena/share.hpp>
#include <catena/visitor.hpp>

namespace catena {

// Arrays in host memory whose first axis is the example: images and labels.
struct Dataset {
    std::vector<Array> arrays;

    // Throws ShapeError if there is no array, one has no axis, or their numbers of examples differ.
    std::int64_t size() const;
};

// The saved state is only (seed, epoch, position): seed and epoch determine the order.
class Minibatches final : public Visitable, public SharedReader {
public:
    // device: where minibatches are made, default Device::current().
    Minibatches(Dataset data, std::int64_t batch_size, std::uint64_t seed = 0, bool shuffle = true,
                Device device = {});

    // Returns the next examples, as new arrays in the order of the data set's arrays. The last
    // minibatch of an epoch may be smaller. With a Share, returns a part, which may be empty.
    std::vector<Array> next();

    std::int64_t size() const noexcept { return size_; }          // examples
    std::int64_t epoch() const noexcept { return epoch_; }        // epochs completed
    std::int64_t position() const noexcept { return position_; }  // examples drawn in this epoch
    void visit(Visitor& visitor) override;

private:
    void order_epoch();

    Dataset data_;
    std::int64_t size_;
    std::int64_t batch_size_;
    std::uint64_t seed_;
    bool shuffle_;
    Device device_;
    std::int64_t epoch_ = 0;
    std::int64_t position_ = 0;
    std::pair<std::int64_t, std::uint64_t> ordered_{-1, 0};  // the epoch and seed of order_
    std::vector<std::int64_t> order_;
};

}  // namespace catena
