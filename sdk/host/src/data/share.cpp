// SharedReader: the parts of a minibatch that belong to this process.
#include <catena/fail.hpp>
#include <catena/share.hpp>

namespace catena {

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
