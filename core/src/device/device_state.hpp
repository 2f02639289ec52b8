// One opened device: its backend, queues, threads and random stream.
#pragma once

#include "device/diagnostics.hpp"
#include "device/plugin.hpp"
#include "device/queue.hpp"

#include <catena/core/device.hpp>

#include <catena/abi/backend.h>
#include <catena/abi/ext/draft/events.h>
#include <catena/abi/ext/draft/graph.h>
#include <catena/abi/ext/draft/memory.h>
#include <catena/abi/ext/threads.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

namespace catena {

class DeviceState;

// A backend of a registered plugin.
struct BackendEntry {
    const catena_backend* table;
    const PluginEntry* plugin;
    std::vector<std::unique_ptr<DeviceState>> devices;  // by ordinal; null until opened
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
    // What the backend has beyond its table, or null.
    const catena_threads* threads = nullptr;
    const catena_memory* memory = nullptr;
    const catena_events* events = nullptr;
    const catena_graph* graphs = nullptr;
    DeviceMemory heap;
    PinnedPool pinned{*this};
    std::atomic<std::uint64_t> random_seed;
    std::atomic<std::uint64_t> random_offset{0};

    Queue& main() noexcept { return *main_; }
    // For a new stream: one that nobody has any more, else a new one. On a device that does all at
    // once there is the main one alone.
    Queue& take_queue();
    void give_back_queue(Queue& queue) noexcept;
    Queue& add_queue(std::unique_ptr<Queue> queue);
    std::vector<Queue*> queues();  // all that were made

    std::atomic<void*> call_log{nullptr};  // of catena::diagnostics

    bool host_accessible() const noexcept { return table.flags & CATENA_BACKEND_HOST_MEMORY; }
    bool async() const noexcept { return table.flags & CATENA_BACKEND_ASYNC; }
    // Copies between the device and memory of the host, or within the device. What the queue was given
    // before is done first; to the host: the caller waits until it is complete. Throws DeviceError
    // with the backend's words.
    void copy(Queue& queue, void* target, const void* source, std::uint64_t bytes, int direction);
    void synchronize();  // all queues
    MemorySize memory_size();
    void release_cached() noexcept;  // once nothing is recorded
    // A wait for the whole device would break every recording: one that begins waits until such a
    // wait is over, and while there is one the device refuses to be waited for.
    std::shared_mutex waits;
    void begin_recording();
    void end_recording() noexcept;

private:
    Queue& make_queue();
    template <class Table>
    void ask(const Table*& table_of, const char* id, std::size_t least);

    std::mutex mutex_;  // of the queues
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<Queue*> idle_;
    Queue* main_ = nullptr;
};

// Before work is given to the queue that may fail after its call has returned; what is recorded does
// so when it is launched.
inline void note_launch(const Queue& queue, const catena_function& function,
                        std::int32_t phase) noexcept {
    if (queue.async && !queue.recording.load(std::memory_order_relaxed))
        diagnostics().launches(queue.device, function, phase);
}

DeviceState& state_of(Device device);  // throws InvalidError for an empty handle
DeviceState& state_or_current(Device device);
// The first device that the host can write to; throws DeviceError if there is none.
DeviceState& default_device();
// Every ordinal draws its own numbers; ordinal 0 draws the same on every backend.
std::uint64_t seed_of(std::uint64_t seed, int ordinal) noexcept;

inline Queue& main_queue(DeviceState& device) noexcept { return device.main(); }

}  // namespace catena
