// Pinned host memory: blocks of few sizes, used again when the work on them is done.
#include "device/pinned.hpp"

#include "device/context.hpp"
#include "device/device_state.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace catena {
namespace {

// Eight sizes from one power of two to the next, so that little is in vain; whole pages.
std::uint64_t size_for(std::uint64_t bytes) {
    const std::uint64_t step = std::max<std::uint64_t>(4096, std::bit_floor(bytes) / 8);
    return std::max((bytes + step - 1) / step, std::uint64_t{1}) * step;
}

}  // namespace

// Does not wait.
bool PinnedPool::Block::done() {
    std::erase_if(uses, [](const auto& use) { return use.first->reached(use.second); });
    return uses.empty();
}

const void* PinnedPool::backend() const noexcept { return &device_.table; }

void* PinnedPool::allocate(std::uint64_t bytes, std::uint64_t& capacity) {
    if (!device_.memory || !device_.memory->host_alloc || !device_.memory->host_free)
        return nullptr;
    capacity = size_for(bytes);
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
        ctx.device = &device_;
        void* memory = nullptr;
        const catena_status status =
            device_.memory->host_alloc(&ctx, device_.dev, capacity, &memory);
        if (status == CATENA_OK) return memory;
        if (status == CATENA_E_UNSUPPORTED) return nullptr;
        if (attempt > 0 || !make_room(ctx, status)) {
            throw_failure(ctx, status, device_.name,
                          fmt::format("{} bytes of pinned host memory wanted", capacity));
        }
    }
}

void PinnedPool::free(void* block, std::uint64_t capacity, Uses uses) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back({block, capacity, std::move(uses)});
}

void PinnedPool::release() noexcept {
    if (device_.heap.recordings.load() > 0) return;
    const std::lock_guard lock(mutex_);
    std::erase_if(free_, [&](Block& block) {
        if (!block.done()) return false;
        device_.memory->host_free(device_.dev, block.memory, block.capacity);
        return true;
    });
}

}  // namespace catena
