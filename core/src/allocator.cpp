// The caching allocator of a device.
#include "device_state.hpp"

#include "context.hpp"
#include "recycle.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace catena {
namespace {

constexpr std::uint64_t smallest = 64;
constexpr std::uint64_t slab_bytes = 256 << 10;
constexpr std::int64_t slack = 64 << 20;
constexpr int most_devices = 8;  // devices whose small blocks a thread caches

// Four classes to each power of two, rounded to whole cache lines, so that slabs stay aligned.
int class_of(std::uint64_t bytes) noexcept {
    if (bytes <= smallest) return 0;
    bytes = (bytes + 63) & ~std::uint64_t{63};
    const int log = 63 - std::countl_zero(bytes - 1);  // 2^log <= bytes - 1
    const std::uint64_t quarter = (bytes - 1) >> (log - 2) & 3;
    return (log - 6) * 4 + static_cast<int>(quarter) + 1;
}

std::uint64_t size_of_class(int index) noexcept {
    if (index == 0) return smallest;
    const int log = (index - 1) / 4 + 6;
    const auto quarter = static_cast<std::uint64_t>((index - 1) % 4);
    const std::uint64_t bytes = (std::uint64_t{1} << log) + ((quarter + 1) << (log - 2));
    return (bytes + 63) & ~std::uint64_t{63};
}

struct ThreadLists {
    CachingAllocator* owner[most_devices] = {};
    int count[most_devices][CachingAllocator::small_classes] = {};
    void* block[most_devices][CachingAllocator::small_classes][CachingAllocator::thread_depth];
};

__attribute__((tls_model("initial-exec"))) thread_local ThreadLists* lists = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local bool closed = false;

struct Closer {
    ~Closer() {
        closed = true;
        ThreadLists* mine = lists;
        lists = nullptr;
        if (!mine) return;
        for (int device = 0; device < most_devices; ++device) {
            if (!mine->owner[device]) continue;
            for (int index = 0; index < CachingAllocator::small_classes; ++index) {
                mine->owner[device]->give_back(index, mine->block[device][index],
                                               mine->count[device][index]);
            }
        }
        delete mine;
    }
};

ThreadLists* open_lists() {
    if (closed) return nullptr;
    static thread_local Closer closer;
    (void)closer;
    return lists = new ThreadLists;
}

}  // namespace

void* CachingAllocator::allocate(std::uint64_t bytes, std::uint64_t& capacity) {
    const int index = class_of(bytes);
    capacity = size_of_class(index);
    if (recycle && index < small_classes && device_.index < most_devices) {
        ThreadLists* mine = lists ? lists : open_lists();
        if (mine) {
            const int device = device_.index;
            int& count = mine->count[device][index];
            if (count == 0) {
                mine->owner[device] = this;
                count = refill(index, mine->block[device][index], thread_depth / 2);
            }
            return mine->block[device][index][--count];
        }
    }
    return take(index, capacity);
}

void CachingAllocator::free(void* block, std::uint64_t capacity) noexcept {
    const int index = class_of(capacity);
    if (recycle && index < small_classes && device_.index < most_devices) {
        ThreadLists* mine = lists ? lists : open_lists();
        if (mine) {
            const int device = device_.index;
            mine->owner[device] = this;
            int& count = mine->count[device][index];
            void** blocks = mine->block[device][index];
            if (count == thread_depth) {
                count = thread_depth / 2;
                give_back(index, blocks + count, thread_depth - count);
            }
            blocks[count++] = block;
            return;
        }
    }
    give_back(index, &block, 1);
}

void CachingAllocator::give_back(int index, void* const* blocks, int count) noexcept {
    if (count == 0) return;
    const auto bytes = static_cast<std::int64_t>(size_of_class(index));
    const std::lock_guard lock(mutex_);
    stats_.in_use -= bytes * count;
    if (!recycle) {
        for (int i = 0; i < count; ++i) {
            device_.table.free(device_.dev, device_.stream, blocks[i],
                               static_cast<std::uint64_t>(bytes));
        }
        return;
    }
    stats_.cached += bytes * count;
    free_[static_cast<std::size_t>(index)].insert(free_[static_cast<std::size_t>(index)].end(),
                                                  blocks, blocks + count);
}

void* CachingAllocator::take(int index, std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    auto& blocks = free_[static_cast<std::size_t>(index)];
    const auto bytes = static_cast<std::int64_t>(capacity);
    void* block = nullptr;
    if (!blocks.empty()) {
        block = blocks.back();
        blocks.pop_back();
        stats_.cached -= bytes;
    } else {
        trim(bytes);
        block = ask_backend(capacity);
    }
    stats_.in_use += bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    return block;
}

// Sizes that vary would fill the cache without end: past twice the peak, the largest free blocks go
// back. A loop that repeats its sizes never comes here.
void CachingAllocator::trim(std::int64_t wanted) {
    const std::int64_t most = 2 * std::max(stats_.peak, stats_.in_use + wanted) + slack;
    for (int index = classes - 1; index >= small_classes; --index) {
        auto& blocks = free_[static_cast<std::size_t>(index)];
        while (!blocks.empty() && stats_.in_use + stats_.cached + wanted > most) {
            device_.table.free(device_.dev, device_.stream, blocks.back(), size_of_class(index));
            stats_.cached -= static_cast<std::int64_t>(size_of_class(index));
            blocks.pop_back();
        }
    }
}

// Cuts slabs, so that small arrays do not cost a call of the backend each.
int CachingAllocator::refill(int index, void** out, int count) {
    const std::uint64_t bytes = size_of_class(index);
    const std::lock_guard lock(mutex_);
    auto& blocks = free_[static_cast<std::size_t>(index)];
    int n = 0;
    for (; n < count && !blocks.empty(); ++n) {
        out[n] = blocks.back();
        blocks.pop_back();
        stats_.cached -= static_cast<std::int64_t>(bytes);
    }
    if (n == 0) {
        if (slab_rest_ < bytes) {
            slab_ = static_cast<char*>(ask_backend(slab_bytes));
            slab_rest_ = slab_bytes;
            slabs_.push_back(slab_);
        }
        for (; n < count && slab_rest_ >= bytes; ++n) {
            out[n] = slab_;
            slab_ += bytes;
            slab_rest_ -= bytes;
        }
    }
    stats_.in_use += static_cast<std::int64_t>(bytes) * n;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
    return n;
}

void* CachingAllocator::ask_backend(std::uint64_t capacity) {
    void* block = nullptr;
    for (int attempt = 0;; ++attempt) {
        catena_ctx ctx;
        ctx.device = &device_;
        ++stats_.system_calls;
        const catena_status status =
            device_.table.alloc(&ctx, device_.dev, device_.stream, capacity, &block);
        if (status == CATENA_OK) return block;
        if (status != CATENA_E_NOMEM || attempt > 0) {
            throw_failure(
                ctx, status, device_.name,
                fmt::format("{} bytes wanted, {} in use by arrays", capacity, stats_.in_use));
        }
        for (int index = small_classes; index < classes; ++index) {  // mutex_ is held
            for (void* cached : free_[static_cast<std::size_t>(index)]) {
                device_.table.free(device_.dev, device_.stream, cached, size_of_class(index));
                stats_.cached -= static_cast<std::int64_t>(size_of_class(index));
            }
            free_[static_cast<std::size_t>(index)].clear();
        }
    }
}

void CachingAllocator::release_cached() noexcept {
    const std::lock_guard lock(mutex_);
    for (int index = small_classes; index < classes; ++index) {
        auto& blocks = free_[static_cast<std::size_t>(index)];
        for (void* block : blocks) {
            device_.table.free(device_.dev, device_.stream, block, size_of_class(index));
            stats_.cached -= static_cast<std::int64_t>(size_of_class(index));
        }
        std::vector<void*>().swap(blocks);
    }
}

MemoryStats CachingAllocator::stats() const {
    const std::lock_guard lock(mutex_);
    MemoryStats stats = stats_;
    if (!lists || device_.index >= most_devices) return stats;
    for (int index = 0; index < small_classes; ++index) {  // what this thread keeps at hand is free
        const std::int64_t bytes =
            static_cast<std::int64_t>(size_of_class(index)) * lists->count[device_.index][index];
        stats.in_use -= bytes;
        stats.cached += bytes;
    }
    return stats;
}

}  // namespace catena
