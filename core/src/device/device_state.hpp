// An opened device: its backend, queues, threads and random stream. catena_ctx: one call into a plugin.
#pragma once

#include "device/hooks.hpp"
#include "device/queue.hpp"

#include <catena/abi/backend.h>
#include <catena/abi/ext/draft/events.h>
#include <catena/abi/ext/draft/graph.h>
#include <catena/abi/ext/draft/memory.h>
#include <catena/abi/ext/threads.h>
#include <catena/abi/host.h>
#include <catena/core/config.hpp>

#include <exception>
#include <shared_mutex>

namespace catena {
class Variable;
}

struct catena_ctx {
    catena::DeviceState* device = nullptr;
    catena_status status = CATENA_OK;
    std::uint32_t draws = 0;       // philox() calls of a kernel
    std::string error;             // text of the first failure
    std::exception_ptr exception;  // of the first failure, if the host threw it
    catena::SmallVector<catena::Variable, 8>* variables = nullptr;  // made in a gradient callback
    catena::RandomState drawn{};  // random state of the first draw
    bool draws_again = false;     // a second run of the kernel gets the same state
};

namespace catena {

class DeviceState;

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
    // Extensions of the backend, or null.
    const catena_threads* threads = nullptr;
    const catena_memory* memory = nullptr;
    const catena_events* events = nullptr;
    const catena_graph* graphs = nullptr;
    DeviceMemory heap;
    PinnedPool pinned{*this};
    std::atomic<std::uint64_t> random_seed;
    std::atomic<std::uint64_t> random_offset{0};

    Queue& main() noexcept { return *main_; }
    // Returns an idle or new queue for a new stream. A synchronous device has only the main queue.
    Queue& take_queue();
    void give_back_queue(Queue& queue) noexcept;
    Queue& add_queue(std::unique_ptr<Queue> queue);
    std::vector<Queue*> queues();  // all existing queues

    std::atomic<void*> call_log{nullptr};  // used by catena::diagnostics

    bool host_accessible() const noexcept { return table.flags & CATENA_BACKEND_HOST_MEMORY; }
    bool async() const noexcept { return table.flags & CATENA_BACKEND_ASYNC; }
    // Copies between the device and host memory, or within the device, after earlier work of the queue.
    // Copies to the host are complete on return. Throws DeviceError with the backend's message.
    void copy(Queue& queue, void* target, const void* source, std::uint64_t bytes, int direction);
    void synchronize();  // waits for all queues
    MemorySize memory_size();
    void release_cached() noexcept;  // postponed during a recording
    // Waits for the whole device would break a recording: they lock this shared, and a recording locks it
    // exclusively to start. During a recording they are refused.
    std::shared_mutex waits;

private:
    Queue& make_queue();

    std::mutex mutex_;  // guards the queues
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<Queue*> idle_;
    Queue* main_ = nullptr;
};

// Called before a submission that may fail asynchronously. Recorded work is noted when it is launched.
inline void note_launch(const Queue& queue, const catena_function& function,
                        std::int32_t phase) noexcept {
    if (queue.async && !queue.recording.load(std::memory_order_relaxed))
        diagnostics().launches(queue.device, function, phase);
}

DeviceState& state_of(Device device);  // throws InvalidError for an empty handle
DeviceState& state_or_current(Device device);
// The first device with host memory, else the first device. Throws DeviceError if there is none.
DeviceState& default_device();
// Derives a device's seed: it depends on the ordinal, and is the same for all backends.
std::uint64_t seed_of(std::uint64_t seed, int ordinal) noexcept;

inline Queue& main_queue(DeviceState& device) noexcept { return device.main(); }

// ---- calls into plugins

// The device that a call on a fallback device draws its random numbers from, else null.
inline thread_local DeviceState* draws_from = nullptr;

// Returns the thread's configuration, or global_config() if the thread has none. Allocates nothing.
const Config& read_config() noexcept;
// Returns a copy of `now`. Consecutive calls of a thread share it while the named settings stay the same.
std::shared_ptr<const Config> keep_named(const Config& now);

// Returns the table of services that every plugin gets.
const catena_host& host_table() noexcept;

// Writes to the log; level: CATENA_LOG_*.
inline void tell(std::int32_t level, const std::string& text) {
    host_table().log(nullptr, level, text.c_str());
}

// Clears a failure, so that the next kernel or a repeated call starts without one.
inline void forget_failure(catena_ctx& ctx) noexcept {
    ctx.status = CATENA_OK;
    ctx.error.clear();
    ctx.exception = nullptr;
}

// Call it after a call into a plugin. If the plugin ran out of memory, releases cached memory, clears the
// failure and returns true: the call may be repeated. Returns false during a recording.
bool make_room(catena_ctx& ctx, catena_status status) noexcept;

// Throws the host's own exception if it was the first failure, else the exception for status with the
// plugin's text. A text that does not begin with '[' gets the prefix "[where] ".
[[noreturn]] void throw_failure(const catena_ctx& ctx, catena_status status,
                                const std::string& where, const std::string& hint = {});

// Calls the backend; throws its error with the device's name.
template <class Call>
void on_backend(DeviceState& device, const Call& call, const char* hint = "") {
    catena_ctx ctx;
    ctx.device = &device;
    const catena_status status = call(&ctx);
    if (status != CATENA_OK) throw_failure(ctx, status, device.name, hint);
}

template <class Call>
void Queue::give(const Call& call) {
    on_backend(device, call);
    advance();
}

}  // namespace catena
