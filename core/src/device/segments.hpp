// Large blocks: cut from segments of the backend's memory, and merged again when they are free.
#pragma once

#include <catena/core/pool.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace catena {

// Ranges of segments, free or used, by address; the smallest free one that fits is taken. Sizes are
// multiples of `unit`. Not thread-safe; nodes come from the pool, so that a loop that repeats its
// sizes takes no heap memory.
class Segments {
public:
    static constexpr std::uint64_t unit = 4096;

    // A block of this size, or null if no free range is large enough. If take() or add() throws
    // std::bad_alloc, nothing has changed.
    void* take(std::uint64_t bytes);
    // A new segment, free as a whole.
    void add(void* memory, std::uint64_t bytes);
    void give_back(void* block) noexcept;
    std::uint64_t reserved() const noexcept { return reserved_; }

    // Takes out segments that are free as a whole, largest first, as long as free(memory, bytes),
    // which gives them back to where they came from, says true.
    template <class Free>
    void release(const Free& free) {
        for (auto it = free_.end(); it != free_.begin();) {
            const auto [bytes, memory] = *--it;
            const auto range = ranges_.find(memory);
            const auto next = std::next(range);
            const bool whole = range->second.first && (next == ranges_.end() || next->second.first);
            if (!whole) continue;
            it = free_.erase(it);
            ranges_.erase(range);
            reserved_ -= bytes;
            if (!free(memory, bytes)) return;
        }
    }

private:
    using Free = std::pair<std::uint64_t, char*>;
    using FreeSet = std::set<Free, std::less<>, PoolAllocator<Free>>;
    struct Range {
        std::uint64_t bytes;
        bool first;  // of its segment
        bool free;
        // A used range keeps its node of free_, so that give_back() allocates nothing.
        FreeSet::node_type node = {};
    };
    using Ranges =
        std::map<char*, Range, std::less<>, PoolAllocator<std::pair<char* const, Range>>>;

    void insert(char* block, std::uint64_t bytes, bool first);
    Ranges::iterator join(Ranges::iterator left, Ranges::iterator right);

    Ranges ranges_;
    FreeSet free_;
    std::uint64_t reserved_ = 0;
};

}  // namespace catena
