// The caching allocator of a queue, its segments, and pinned memory.
#include "device/device_state.hpp"

#include <limits.hpp>

namespace catena {

// ---- segments: best fit, split and merge

void* Segments::take(std::uint64_t bytes) {
    const auto fit = free_.lower_bound(Free{bytes, nullptr});
    if (fit == free_.end()) return nullptr;
    const auto [size, block] = *fit;
    if (size > bytes) insert(block + bytes, size - bytes, false);
    Range& range = ranges_.find(block)->second;
    range.bytes = bytes;
    range.node = free_.extract(fit);
    return block;
}

void Segments::add(void* memory, std::uint64_t bytes) {
    insert(static_cast<char*>(memory), bytes, true);
    reserved_ += bytes;
}

void Segments::insert(char* block, std::uint64_t bytes, bool first) {
    const auto range = ranges_.emplace(block, Range{bytes, first}).first;
    try {
        free_.emplace(bytes, block);
    } catch (...) {
        ranges_.erase(range);
        throw;
    }
}

void Segments::give_back(void* block) noexcept {
    auto range = ranges_.find(static_cast<char*>(block));
    auto node = std::move(range->second.node);
    const auto join = [&](Ranges::iterator left, Ranges::iterator right, Ranges::iterator free) {
        free_.erase(Free{free->second.bytes, free->first});
        left->second.bytes += right->second.bytes;
        ranges_.erase(right);
        return left;
    };
    const auto next = std::next(range);
    if (next != ranges_.end() && next->second.node.empty() && !next->second.first)
        join(range, next, next);
    if (!range->second.first && std::prev(range)->second.node.empty())
        range = join(std::prev(range), range, std::prev(range));
    node.value() = {range->second.bytes, range->first};
    free_.insert(std::move(node));
}

// ---- allocators

namespace {

constexpr std::uint64_t smallest = 64;
constexpr std::uint64_t slab_bytes = 256 << 10;
constexpr std::int64_t slack = 64 << 20;
constexpr std::uint64_t largest_growth = 64 << 20;
constexpr int most_slots = 8;  // allocators whose small blocks a thread caches
std::atomic<int> next_slot{0};

// Four size classes for each power of two, rounded to whole cache lines to keep slabs aligned.
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
    ThreadLists() {}  // NOLINT: the blocks stay uninitialized
    ~ThreadLists() {
        for (int slot = 0; slot < most_slots; ++slot) {
            for (int index = 0; owner[slot] && index < CachingAllocator::small_classes; ++index)
                owner[slot]->give_back(index, blocks[slot][index], count[slot][index]);
        }
    }
    CachingAllocator* owner[most_slots] = {};
    int count[most_slots][CachingAllocator::small_classes] = {};
    void* blocks[most_slots][CachingAllocator::small_classes][CachingAllocator::thread_depth];
};
__attribute__((tls_model("initial-exec"))) thread_local constinit PerThread<ThreadLists> of_thread;

// Returns the number and the list of a thread's blocks of one class. Both are null if the thread cannot keep
// blocks of the allocator.
inline std::pair<int*, void**> list_of(CachingAllocator& owner, int slot, int index) noexcept {
    ThreadLists* mine = slot < most_slots ? of_thread.try_get() : nullptr;
    if (!mine) [[unlikely]]
        return {};
    mine->owner[slot] = &owner;
    return {&mine->count[slot][index], mine->blocks[slot][index]};
}

}  // namespace

// Allocators of recordings have no slot: threads do not cache their blocks.
CachingAllocator::CachingAllocator(Queue& owner, bool recorded)
    : queue(owner),
      memory_(owner.device.heap),
      recorded_(recorded),
      slot_(recorded ? most_slots : next_slot.fetch_add(1)),
      kept_(recorded) {
    const std::lock_guard lock(memory_.mutex);
    memory_.pools.push_back(this);
}

void* CachingAllocator::allocate(std::uint64_t bytes, std::uint64_t& capacity) {
    const int index = class_of(bytes);
    const bool small = index < small_classes;
    capacity = small ? size_of_class(index)
                     : (bytes + Segments::unit - 1) / Segments::unit * Segments::unit;
    if (!small || !keeps()) return take_large(bytes, capacity);
    if (const auto [n, blocks] = list_of(*this, slot_, index); n) {
        if (*n == 0) *n = refill(index, blocks, thread_depth / 2);
        return blocks[--*n];
    }
    void* block = nullptr;
    refill(index, &block, 1);
    return block;
}

void* CachingAllocator::take_large(std::uint64_t bytes, std::uint64_t capacity) {
    if (bytes > largest_memory) {  // sums of larger sizes would overflow
        raise<MemoryError>("[{}] memory: expected at most {} bytes, got {}", queue.device.name,
                           largest_memory, bytes);
    }
    const auto size = static_cast<std::int64_t>(capacity);
    const std::lock_guard lock(memory_.mutex);
    void* block = keeps() ? segments_.take(capacity) : ask_backend(capacity);
    if (!block) block = grow(capacity);
    count(size, keeps() ? -size : 0);
    return block;
}

void CachingAllocator::free(void* block, std::uint64_t capacity) noexcept {
    const int index = class_of(capacity);
    if (index >= small_classes || !keeps()) return give_back_large(block, capacity);
    const auto [n, blocks] = list_of(*this, slot_, index);
    if (!n) return give_back(index, &block, 1);
    if (*n == thread_depth) {
        *n = thread_depth / 2;
        give_back(index, blocks + *n, thread_depth - *n);
    }
    blocks[(*n)++] = block;
}

void CachingAllocator::give_back_large(void* block, std::uint64_t capacity) noexcept {
    const auto size = static_cast<std::int64_t>(capacity);
    const std::lock_guard lock(memory_.mutex);
    count(-size, keeps() ? size : 0);
    if (keeps()) segments_.give_back(block);
    else return_to_backend(block, capacity);
}

void CachingAllocator::count(std::int64_t in_use, std::int64_t cached) noexcept {
    for (MemoryStats* stats : {&stats_, &memory_.stats}) {
        stats->in_use += in_use;
        stats->cached += cached;
        stats->peak = std::max(stats->peak, stats->in_use);
    }
}

// Frees a block. During a recording, keeps it until the recording ends.
void CachingAllocator::return_to_backend(void* block, std::uint64_t bytes) noexcept {
    if (memory_.recordings.load() > 0) {
        memory_.release_wanted = true;
        try {
            segments_.add(block, bytes);
            return count(0, static_cast<std::int64_t>(bytes));
        } catch (const std::bad_alloc&) {  // the block is leaked
            return;
        }
    }
    queue.device.table.free(queue.device.dev, queue.native, block, bytes);
}

void CachingAllocator::give_back(int index, void* const* blocks, int n) noexcept {
    if (n == 0) return;
    const std::int64_t all = static_cast<std::int64_t>(size_of_class(index)) * n;
    const std::lock_guard lock(memory_.mutex);
    count(-all, all);
    auto& all_free = free_[static_cast<std::size_t>(index)].blocks;  // refill() reserved capacity
    all_free.insert(all_free.end(), blocks, blocks + n);
}

// Adds a segment as large as all existing ones, up to 64 MiB, so that varying sizes need few segments.
// First releases free segments of all queues until memory in use and in the cache is at most twice the peak
// plus slack, else varying sizes would grow the cache without limit.
void* CachingAllocator::grow(std::uint64_t capacity) {
    const MemoryStats& all = memory_.stats;
    const auto wanted = static_cast<std::int64_t>(capacity);
    const std::int64_t most = 2 * std::max(all.peak, all.in_use + wanted) + slack;
    release_segments([&] { return all.in_use + all.cached + wanted > most; });
    std::uint64_t bytes = std::max(capacity, std::min(segments_.reserved(), largest_growth));
    void* memory = nullptr;
    if (bytes > capacity) {
        catena_ctx ctx;
        memory = try_backend(bytes, ctx);
    }
    if (!memory) memory = ask_backend(bytes = capacity);
    try {
        segments_.add(memory, bytes);
    } catch (const std::bad_alloc&) {
        return_to_backend(memory, bytes);
        throw;
    }
    count(0, static_cast<std::int64_t>(bytes));
    return segments_.take(capacity);
}

// Returns free segments of all queues to the backend while more() returns true. Requires the lock.
template <class More>
void CachingAllocator::release_segments(const More& more) noexcept {
    if (memory_.recordings.load() > 0) return;
    for (CachingAllocator* pool : memory_.pools) {
        if (pool->kept_ || !more()) continue;
        pool->segments_.release([&](void* memory, std::uint64_t bytes) {
            pool->return_to_backend(memory, bytes);
            pool->count(0, -static_cast<std::int64_t>(bytes));
            return more();
        });
    }
}

// Takes free blocks of a class, or cuts new ones from a slab to save calls of the backend.
int CachingAllocator::refill(int index, void** out, int wanted) {
    const std::uint64_t bytes = size_of_class(index);
    const auto all_of = [&](int n) { return static_cast<std::int64_t>(bytes) * n; };
    const std::lock_guard lock(memory_.mutex);
    auto& [blocks, made] = free_[static_cast<std::size_t>(index)];
    int n = 0;
    for (; n < wanted && !blocks.empty(); ++n) {
        out[n] = blocks.back();
        blocks.pop_back();
    }
    if (n > 0) {
        count(all_of(n), -all_of(n));
        return n;
    }
    if (blocks.capacity() < made + static_cast<std::size_t>(wanted))
        blocks.reserve(2 * made + static_cast<std::size_t>(wanted));
    if (slab_.size() < bytes) slab_ = {static_cast<char*>(ask_backend(slab_bytes)), slab_bytes};
    for (; n < wanted && slab_.size() >= bytes; ++n) {
        out[n] = slab_.data();
        slab_ = slab_.subspan(bytes);
    }
    count(all_of(n), 0);
    made += static_cast<std::size_t>(n);
    return n;
}

void* CachingAllocator::try_backend(std::uint64_t capacity, catena_ctx& ctx) {
    DeviceState& device = queue.device;
    ctx.device = &device;
    void* block = nullptr;
    ++stats_.system_calls;
    ++memory_.stats.system_calls;
    ctx.status = device.table.alloc(&ctx, device.dev, queue.native, capacity, &block);
    if (ctx.status == CATENA_OK && !block)
        fail(&ctx, CATENA_E_DEVICE, "alloc(): expected memory, got NULL");
    return ctx.status == CATENA_OK ? block : nullptr;
}

// Requires the device's lock. Before it fails, releases the cached memory of all queues and tries again.
void* CachingAllocator::ask_backend(std::uint64_t capacity) {
    DeviceState& device = queue.device;
    for (int attempt = 0;; ++attempt) {
        catena_ctx ctx;
        if (void* block = try_backend(capacity, ctx)) return block;
        const bool recorded = memory_.recordings.load() > 0;
        if (ctx.status != CATENA_E_NOMEM || attempt > 0 || recorded) {
            std::string hint =
                fmt::format("{} bytes wanted, {} in use by arrays", capacity, memory_.stats.in_use);
            const MemorySize size = Device(&device).memory_size();
            if (size.total) hint += fmt::format(", {} free of {}", size.free, size.total);
            if (recorded)
                hint += "; during a recording; run the body once before, so its memory is cached";
            throw_failure(ctx, ctx.status, device.name, hint);
        }
        release_segments([] { return true; });
        device.pinned.release();
        if (device.async()) {  // frees are ordered on the streams: wait for them
            catena_ctx wait;
            device.table.sync(&wait, device.dev);
        }
    }
}

void CachingAllocator::release_cached() noexcept {
    const std::lock_guard lock(memory_.mutex);
    memory_.release_wanted = memory_.recordings.load() > 0;
    release_segments([] { return true; });
}

void CachingAllocator::keep(bool kept) noexcept {
    const std::lock_guard lock(memory_.mutex);
    kept_ = kept;
}

void CachingAllocator::free_lists(MemoryStats& stats) const noexcept {
    const ThreadLists* const mine = slot_ < most_slots ? of_thread.find() : nullptr;
    for (int index = 0; mine && index < small_classes; ++index) {
        const auto bytes =
            static_cast<std::int64_t>(size_of_class(index)) * mine->count[slot_][index];
        stats.in_use -= bytes;
        stats.cached += bytes;
    }
}

MemoryStats CachingAllocator::stats() const {
    const std::lock_guard lock(memory_.mutex);
    MemoryStats stats = stats_;
    free_lists(stats);
    return stats;
}

// ---- pinned memory

// Whether all work on the block is done. Waits only if the backend cannot query events.
bool PinnedPool::Block::done() {
    std::erase_if(uses, [](const auto& use) { return use.first->reached(use.second); });
    return uses.empty();
}

void* PinnedPool::allocate(std::uint64_t bytes, std::uint64_t& capacity) {
    if (!device.memory || !device.memory->host_alloc || !device.memory->host_free) return nullptr;
    // Eight sizes for each power of two, to waste little memory; multiples of a page.
    const std::uint64_t step = std::max<std::uint64_t>(4096, std::bit_floor(bytes) / 8);
    capacity = std::max((bytes + step - 1) / step, std::uint64_t{1}) * step;
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(free_.begin(), free_.end(), [&](Block& block) {
            return block.capacity == capacity && block.done();
        });
        if (found != free_.end()) {
            void* memory = found->memory;
            free_.erase(found);
            return memory;
        }
    }
    for (int attempt = 0;; ++attempt) {
        catena_ctx ctx;
        ctx.device = &device;
        void* memory = nullptr;
        const catena_status status = device.memory->host_alloc(&ctx, device.dev, capacity, &memory);
        if (status == CATENA_OK) return memory;
        if (status == CATENA_E_UNSUPPORTED) return nullptr;
        if (attempt > 0 || !make_room(ctx, status)) {
            throw_failure(ctx, status, device.name,
                          fmt::format("{} bytes of pinned host memory wanted", capacity));
        }
    }
}

void PinnedPool::free(void* block, std::uint64_t capacity, Uses uses) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back({block, capacity, std::move(uses)});
}

void PinnedPool::release() noexcept {
    if (device.heap.recordings.load() > 0) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(free_, [&](Block& block) {
        if (!block.done()) return false;
        device.memory->host_free(device.dev, block.memory, block.capacity);
        return true;
    });
}

}  // namespace catena
