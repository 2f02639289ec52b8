// Segments: best fit, split and merge.
#include "device/segments.hpp"

#include <iterator>
#include <utility>

namespace catena {

void* Segments::take(std::uint64_t bytes) {
    const auto fit = free_.lower_bound(Free{bytes, nullptr});
    if (fit == free_.end()) return nullptr;
    const auto [size, block] = *fit;
    if (size > bytes) insert(block + bytes, size - bytes, false);
    Range& range = ranges_.find(block)->second;
    range.bytes = bytes;
    range.free = false;
    range.node = free_.extract(fit);
    return block;
}

void Segments::add(void* memory, std::uint64_t bytes) {
    insert(static_cast<char*>(memory), bytes, true);
    reserved_ += bytes;
}

void Segments::insert(char* block, std::uint64_t bytes, bool first) {
    const auto range = ranges_.emplace(block, Range{bytes, first, true}).first;
    try {
        free_.emplace(bytes, block);
    } catch (...) {
        ranges_.erase(range);
        throw;
    }
}

// right follows left in one segment; neither is in free_.
Segments::Ranges::iterator Segments::join(Ranges::iterator left, Ranges::iterator right) {
    left->second.bytes += right->second.bytes;
    ranges_.erase(right);
    return left;
}

void Segments::give_back(void* block) noexcept {
    auto range = ranges_.find(static_cast<char*>(block));
    auto node = std::move(range->second.node);
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
    node.value() = {range->second.bytes, range->first};
    free_.insert(std::move(node));
}

}  // namespace catena
