// One opened device: its backend, queues, threads and random stream. catena_ctx: one call into a plugin.
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
    std::uint32_t draws = 0;       // of a kernel, by philox()
    std::string error;             // the first failure's text
    std::exception_ptr exception;  // of the first failure, if it is the host's own
    catena::SmallVector<catena::Variable, 8>* variables = nullptr;  // made in a gradient callback
    catena::RandomState drawn{};  // where the first of the draws starts
    bool draws_again = false;     // a second run of the kernel gets the same
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
    // For a new stream: an idle one, else a new one. A synchronous device has only the main one.
    Queue& take_queue();
    void give_back_queue(Queue& queue) noexcept;
    Queue& add_queue(std::unique_ptr<Queue> queue);
    std::vector<Queue*> queues();  // all that were made

    std::atomic<void*> call_log{nullptr};  // of catena::diagnostics

    bool host_accessible() const noexcept { return table.flags & CATENA_BACKEND_HOST_MEMORY; }
    bool async() const noexcept { return table.flags & CATENA_BACKEND_ASYNC; }
    // Copies between the device and memory of the host, or within the device. Waits for earlier work of
    // the queue; copies to the host are complete on return. Throws DeviceError with the backend's message.
    void copy(Queue& queue, void* target, const void* source, std::uint64_t bytes, int direction);
    void synchronize();  // all queues
    MemorySize memory_size();
    void release_cached() noexcept;  // once nothing is recorded
    // Waiting for the whole device would break a recording. So a recording starts after such a wait,
    // and the device refuses to wait during a recording.
    std::shared_mutex waits;

private:
    Queue& make_queue();

    std::mutex mutex_;  // of the queues
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
// The first device that the host can write to; throws DeviceError if there is none.
DeviceState& default_device();
// Every ordinal draws its own numbers; ordinal 0 draws the same on every backend.
std::uint64_t seed_of(std::uint64_t seed, int ordinal) noexcept;

inline Queue& main_queue(DeviceState& device) noexcept { return device.main(); }

// ---- calls into plugins

// While a call runs on a fallback device: the device that its random numbers are drawn from.
inline thread_local DeviceState* draws_from = nullptr;

// The values of config(), for reading. Allocates nothing: a thread without a copy reads global_config().
const Config& read_config() noexcept;
// A copy with now.named. Calls of a thread that were made with the same settings share it.
std::shared_ptr<const Config> keep_named(const Config& now);

// The table that every plugin gets.
const catena_host& host_table() noexcept;

// Writes to the log; level: CATENA_LOG_*.
inline void tell(std::int32_t level, const std::string& text) {
    host_table().log(nullptr, level, text.c_str());
}

// A kernel that declines leaves no failure to the next one.
inline void forget_failure(catena_ctx& ctx) noexcept {
    ctx.status = CATENA_OK;
    ctx.error.clear();
    ctx.exception = nullptr;
}

// Call it after a call into a plugin. If that ran out of memory, releases cached memory, clears the
// failure and returns true: the call may be repeated. Returns false during a recording.
bool make_room(catena_ctx& ctx, catena_status status) noexcept;

// Throws the host's own exception if it was the first failure; else the one of status with the
// plugin's text, "[where] " put before it if it is not there.
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
