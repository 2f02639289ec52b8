// One opened device: its backend, allocator, threads and random stream.
#pragma once

#include "segments.hpp"

#include <catena/core/device.hpp>

#include <catena/abi/backend.h>
#include <catena/abi/ext/threads.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace catena {

struct BackendEntry;

// Caches memory. Small blocks have size classes, four to each power of two, and pass through lists of
// the thread, so that the hot path takes no lock; large ones are cut from segments, which grow with
// what is in use.
class CachingAllocator {
public:
    explicit CachingAllocator(DeviceState& device) : device_(device) {}

    // Throws MemoryError. capacity: the block's true size, to be given back to free().
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    void free(void* block, std::uint64_t capacity) noexcept;
    void release_cached() noexcept;
    MemoryStats stats() const;

    // For the lists of a thread that ends.
    void give_back(int size_class, void* const* blocks, int count) noexcept;

    static constexpr int small_classes = 28;  // up to 7 KiB
    static constexpr int thread_depth = 32;   // blocks kept in a thread for each small class

private:
    void* take_small(int size_class, std::uint64_t capacity);
    void* take_large(std::uint64_t capacity);
    void give_back_large(void* block, std::uint64_t capacity) noexcept;
    void* grow(std::uint64_t capacity);
    void trim(std::int64_t wanted);
    void* ask_backend(std::uint64_t capacity);
    void* try_backend(std::uint64_t capacity, catena_ctx& ctx, catena_status& status);
    int refill(int size_class, void** blocks, int count);
    void release_segments() noexcept;
    void used(std::int64_t bytes) noexcept;

    DeviceState& device_;
    mutable std::mutex mutex_;
    std::array<std::vector<void*>, small_classes> free_;
    Segments segments_;
    std::vector<void*> slabs_;  // memory that small blocks are cut from: never given back
    char* slab_ = nullptr;      // rest of the newest slab
    std::uint64_t slab_rest_ = 0;
    MemoryStats stats_;
};

class DeviceState {
public:
    DeviceState(BackendEntry& backend_entry, int device_ordinal, int device_index);

    BackendEntry& backend;
    const catena_backend& table;
    int ordinal;
    int index;  // among all opened devices
    std::string name;
    void* dev = nullptr;
    const catena_threads* threads = nullptr;
    catena_stream* stream = nullptr;
    CachingAllocator allocator{*this};
    std::atomic<std::uint64_t> random_seed;
    std::atomic<std::uint64_t> random_offset{0};

    bool host_accessible() const noexcept { return table.flags & CATENA_BACKEND_HOST_MEMORY; }
    // Throws DeviceError with the backend's words.
    void copy(void* target, const void* source, std::uint64_t bytes, int direction);
    void synchronize();
};

}  // namespace catena
