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
constexpr std::uint64_t largest_growth = 64 << 20;
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
    if (index >= small_classes) {
        capacity = (bytes + Segments::unit - 1) / Segments::unit * Segments::unit;
        return take_large(capacity);
    }
    capacity = size_of_class(index);
    if (recycle && device_.index < most_devices) {
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
    return take_small(index, capacity);
}

void CachingAllocator::free(void* block, std::uint64_t capacity) noexcept {
    const int index = class_of(capacity);
    if (index >= small_classes) return give_back_large(block, capacity);
    if (recycle && device_.index < most_devices) {
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

void CachingAllocator::used(std::int64_t bytes) noexcept {
    stats_.in_use += bytes;
    stats_.peak = std::max(stats_.peak, stats_.in_use);
}

void* CachingAllocator::take_small(int index, std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    auto& blocks = free_[static_cast<std::size_t>(index)];
    const auto bytes = static_cast<std::int64_t>(capacity);
    void* block = nullptr;
    if (!blocks.empty()) {
        block = blocks.back();
        blocks.pop_back();
        stats_.cached -= bytes;
    } else {
        block = ask_backend(capacity);
    }
    used(bytes);
    return block;
}

void* CachingAllocator::take_large(std::uint64_t capacity) {
    const std::lock_guard lock(mutex_);
    const auto bytes = static_cast<std::int64_t>(capacity);
    void* block = nullptr;
    if (recycle) {
        block = segments_.take(capacity);
        if (!block) block = grow(capacity);
        stats_.cached -= bytes;
    } else {
        block = ask_backend(capacity);
    }
    used(bytes);
    return block;
}

void CachingAllocator::give_back_large(void* block, std::uint64_t capacity) noexcept {
    const auto bytes = static_cast<std::int64_t>(capacity);
    const std::lock_guard lock(mutex_);
    stats_.in_use -= bytes;
    if (!recycle) return device_.table.free(device_.dev, device_.stream, block, capacity);
    stats_.cached += bytes;
    segments_.give_back(block);
}

// A segment as large as all there are, so that blocks of changing sizes find room in few of them.
void* CachingAllocator::grow(std::uint64_t capacity) {
    trim(static_cast<std::int64_t>(capacity));
    std::uint64_t bytes = std::max(capacity, std::min(segments_.reserved(), largest_growth));
    void* memory = nullptr;
    if (bytes > capacity) {
        catena_ctx ctx;
        ctx.device = &device_;
        catena_status status = CATENA_OK;
        memory = try_backend(bytes, ctx, status);
    }
    if (!memory) memory = ask_backend(bytes = capacity);
    segments_.add(memory, bytes);
    stats_.cached += static_cast<std::int64_t>(bytes);
    return segments_.take(capacity);
}

// Sizes that vary would fill the cache without end: past twice the peak, segments that are free go
// back. A loop that repeats its sizes never comes here.
void CachingAllocator::trim(std::int64_t wanted) {
    const std::int64_t most = 2 * std::max(stats_.peak, stats_.in_use + wanted) + slack;
    const auto too_much = [&] { return stats_.in_use + stats_.cached + wanted > most; };
    if (!too_much()) return;
    segments_.release([&](void* memory, std::uint64_t bytes) {
        device_.table.free(device_.dev, device_.stream, memory, bytes);
        stats_.cached -= static_cast<std::int64_t>(bytes);
        return too_much();
    });
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

void* CachingAllocator::try_backend(std::uint64_t capacity, catena_ctx& ctx,
                                    catena_status& status) {
    void* block = nullptr;
    ++stats_.system_calls;
    status = device_.table.alloc(&ctx, device_.dev, device_.stream, capacity, &block);
    return status == CATENA_OK ? block : nullptr;
}

void* CachingAllocator::ask_backend(std::uint64_t capacity) {
    for (int attempt = 0;; ++attempt) {
        catena_ctx ctx;
        ctx.device = &device_;
        catena_status status = CATENA_OK;
        if (void* block = try_backend(capacity, ctx, status)) return block;
        if (status != CATENA_E_NOMEM || attempt > 0) {
            throw_failure(
                ctx, status, device_.name,
                fmt::format("{} bytes wanted, {} in use by arrays", capacity, stats_.in_use));
        }
        release_segments();
    }
}

void CachingAllocator::release_segments() noexcept {
    segments_.release([&](void* memory, std::uint64_t bytes) {
        device_.table.free(device_.dev, device_.stream, memory, bytes);
        stats_.cached -= static_cast<std::int64_t>(bytes);
        return true;
    });
}

void CachingAllocator::release_cached() noexcept {
    const std::lock_guard lock(mutex_);
    release_segments();
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
