// Minibatches: orders the examples of an epoch, and gathers rows of arrays. SharedReader: the parts
// of a minibatch that belong to this process.
#include "../support.hpp"

#include <catena/core/stream.hpp>
#include <catena/minibatches.hpp>
#include <catena/random.hpp>

#include <cstring>
#include <numeric>

namespace catena {
namespace {

// Returns n rows of source on a device. Copies asynchronously if the host cannot access its memory.
Array gather(const Array& source, const std::int64_t* order, std::int64_t n, Device device) {
    Shape shape = source.shape();
    const std::int64_t rows = shape[0];
    shape[0] = n;
    const bool copies = !device.host_accessible();
    const Array result = copies ? Array::pinned(shape, source.dtype(), device)
                                : Array::empty(shape, source.dtype(), source.device());
    const auto row = static_cast<std::size_t>(rows ? source.nbytes() / rows : 0);
    const std::byte* from = address_of(source);
    std::byte* to = address_of(result);
    for (std::int64_t i = 0; i < n; ++i, to += row)
        std::memcpy(to, from + static_cast<std::size_t>(order[i]) * row, row);
    return copies ? result.to(device, Stream::current(device)) : result.to(device);
}

}  // namespace

std::int64_t Dataset::size() const {
    if (arrays.empty()) throw ShapeError("[Dataset] arrays: expected at least one, got none");
    for (const auto& array : arrays) {
        if (array.ndim() < 1 || array.shape()[0] != arrays[0].shape()[0])
            fail<ShapeError>("[Dataset] examples: expected {} as first extent, got {}",
                             to_string(arrays[0].shape()), to_string(array.shape()));
    }
    return arrays[0].shape()[0];
}

Minibatches::Minibatches(Dataset data, std::int64_t batch_size, std::uint64_t seed, bool shuffle,
                         Device device)
    : data_(std::move(data)),
      size_(data_.size()),
      batch_size_(batch_size),
      seed_(seed),
      shuffle_(shuffle),
      device_(device ? device : Device::current()) {
    if (size_ < 1) throw ShapeError("[Minibatches] examples: expected at least one, got none");
    if (batch_size_ < 1)
        fail<InvalidError>("[Minibatches] batch_size: expected at least 1, got {}", batch_size_);
    for (const auto& array : data_.arrays) {
        if (!array.device().host_accessible())
            fail<DeviceError>("[Minibatches] data: expected host memory, got {}",
                              array.device().name());
    }
}

void Minibatches::order_epoch() {
    if (ordered_ == std::pair(epoch_, seed_)) return;
    order_.resize(static_cast<std::size_t>(size_));
    std::iota(order_.begin(), order_.end(), 0);
    if (shuffle_) {
        // Uses its own key, so that device streams with the same seed draw other numbers.
        Generator generator(seed_ ^ 0x6d696e6962617463u, static_cast<std::uint64_t>(epoch_) << 32);
        generator.shuffle(order_);
    }
    ordered_ = {epoch_, seed_};
}

std::vector<Array> Minibatches::next() {
    if (position_ < 0 || position_ >= size_)
        fail<InvalidError>("[Minibatches] position: expected 0 to {}, got {}", size_ - 1,
                           position_);
    order_epoch();
    const std::int64_t n = std::min(batch_size_, size_ - position_);
    const Range own = part(n);
    std::vector<Array> batch;
    batch.reserve(data_.arrays.size());
    for (const auto& array : data_.arrays)
        batch.push_back(gather(array, order_.data() + position_ + own.begin, own.size(), device_));
    if (end_part(own.size(), n)) advance(position_, n, size_, epoch_);
    return batch;
}

void Minibatches::visit(Visitor& visitor) {
    require_whole("Minibatches");
    visitor.require("size", size_).require("batch_size", batch_size_).require("shuffle", shuffle_);
    visitor("seed", seed_).within("epoch", epoch_, 0, most_epochs);
    visitor.within("position", position_, 0, std::max<std::int64_t>(size_ - 1, 0));
}

// ---- SharedReader

void SharedReader::set_share(const Share& share) {
    if (share.size < 1 || share.rank < 0 || share.rank >= share.size)
        fail<InvalidError>("[Share] rank: expected 0 to size - 1, got {} of {}", share.rank,
                           share.size);
    if (share.parts < 0 || share.parts % share.size != 0)
        fail<InvalidError>("[Share] parts: expected a multiple of size {}, got {}", share.size,
                           share.parts);
    require_whole("Share");
    share_ = share;
}

bool SharedReader::end_part(std::int64_t items, std::int64_t all_items) {
    weight_ =
        static_cast<double>(items) * static_cast<double>(parts()) / static_cast<double>(all_items);
    all_items_ = all_items;
    part_ = (part_ + 1) % own();
    return part_ == 0;
}

void SharedReader::require_whole(const char* reader) const {
    if (part_ != 0)
        fail<InvalidError>("[{}] state: expected all {} parts of the minibatch to be taken, got {}",
                           reader, own(), part_);
}

}  // namespace catena
