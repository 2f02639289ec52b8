// Segments: best fit, split and merge.
#include "segments.hpp"

#include <iterator>

namespace catena {

void* Segments::take(std::uint64_t bytes) {
    const auto fit = free_.lower_bound(Free{bytes, nullptr});
    if (fit == free_.end()) return nullptr;
    const auto [size, block] = *fit;
    free_.erase(fit);
    Range& range = ranges_.find(block)->second;
    range.free = false;
    if (size > bytes) {
        range.bytes = bytes;
        ranges_.emplace(block + bytes, Range{size - bytes, false, true});
        free_.emplace(size - bytes, block + bytes);
    }
    return block;
}

void Segments::add(void* memory, std::uint64_t bytes) {
    auto* const block = static_cast<char*>(memory);
    ranges_.emplace(block, Range{bytes, true, true});
    free_.emplace(bytes, block);
    reserved_ += bytes;
}

// right follows left in one segment; neither is in free_.
Segments::Ranges::iterator Segments::join(Ranges::iterator left, Ranges::iterator right) {
    left->second.bytes += right->second.bytes;
    ranges_.erase(right);
    return left;
}

void Segments::give_back(void* block) {
    auto range = ranges_.find(static_cast<char*>(block));
    const auto next = std::next(range);
    if (next != ranges_.end() && next->second.free && !next->second.first) {
        free_.erase(Free{next->second.bytes, next->first});
        join(range, next);
    }
    if (!range->second.first) {
        const auto before = std::prev(range);
        if (before->second.free) {
            free_.erase(Free{before->second.bytes, before->first});
            range = join(before, range);
        }
    }
    range->second.free = true;
    free_.emplace(range->second.bytes, range->first);
}

}  // namespace catena
