// An opened device: its backend, queues, threads and random stream; calls into plugins and their loader.
#pragma once

#include "device/allocator.hpp"

#include <catena/abi/ext/draft/events.h>
#include <catena/abi/ext/draft/graph.h>
#include <catena/abi/ext/draft/memory.h>
#include <catena/abi/ext/threads.h>
#include <catena/core/config.hpp>
#include <catena/core/extend/context.hpp>
#include <catena/core/extend/diagnostics.hpp>

#include <filesystem>
#include <shared_mutex>

namespace catena {

// The interface of a loader, which registers itself; the core does not access files.
class PluginSource {
public:
    virtual void load() = 0;             // called before each search; loads the first time
    virtual std::string report() = 0;    // text on what was searched, loaded and refused
    virtual std::string refusals() = 0;  // only the refused files; "" if there are none

protected:
    ~PluginSource() = default;
};

// The source must live until the process ends.
void set_plugin_source(PluginSource* source) noexcept;
void load_plugins_once();
// Returns `what`, followed by the loader's report on lines of its own.
std::string with_plugin_report(std::string what);

// A registered plugin.
struct PluginEntry {
    std::string id;  // from its manifest
    std::filesystem::path file;
    const catena_plugin* table = nullptr;
    int order = 0;  // position in loading order
};

// Marks code of a plugin: while an object exists, exit() on this thread counts as called by the plugin. The
// process then ends with exit code 1 and a message that names the plugin's file. Handlers that were
// registered with atexit() before the first plugin was loaded do not run.
class PluginStep {
public:
    using Tell = std::function<void(const std::string& reason)>;
    // step: the code that runs, such as "count()". tell: called after the message.
    PluginStep(const std::filesystem::path& file, const char* step, Tell tell = {});
    void enters(const char* step) { step_ = step; }

private:
    static void process_ends();

    const std::filesystem::path& file_;
    const char* step_;
    Tell tell_;
    using_value<PluginStep*> scope_;
};

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
    const void* extension(const char* id) const;  // of the backend, or null
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

    bool host_accessible() const noexcept { return table.flags & CATENA_BACKEND_HOST_MEMORY; }
    bool async() const noexcept { return table.flags & CATENA_BACKEND_ASYNC; }
    // Copies between the device and host memory, or within the device, after earlier work of the queue.
    // Copies to the host are complete on return. Throws DeviceError with the backend's message.
    void copy(Queue& queue, void* target, const void* source, std::uint64_t bytes, int direction);
    void release_cached() noexcept;  // postponed during a recording
    // Waits for the whole device would break a recording: they lock this shared, and a recording locks it
    // exclusively to start. During a recording they are refused.
    std::shared_mutex waits;

private:
    friend Queue& add_queue(std::unique_ptr<Queue> queue);
    friend std::vector<Queue*> queues_of(Device device);
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
        diagnostics().launches(Device(&queue.device), function, phase);
}

// ---- calls into plugins

// The device that a call on a fallback device draws its random numbers from, else null.
inline thread_local DeviceState* draws_from = nullptr;

// Returns the thread's configuration, or global_config() if the thread has none. Allocates nothing.
const Config& read_config() noexcept;
// Returns a copy of `now`. Consecutive calls of a thread share it while the named settings stay the same.
std::shared_ptr<const Config> keep_named(const Config& now);

// Calls the backend; throws its error with the device's name.
template <class Call>
void on_backend(DeviceState& device, const Call& call, const char* hint = "") {
    catena_ctx ctx;
    ctx.device = &device;
    const catena_status status = call(&ctx);
    if (status != CATENA_OK) throw_failure(ctx, status, device.name, hint);
}

// The same for work that it submits to a queue.
template <class Call>
void submit(Queue& queue, const Call& call) {
    on_backend(queue.device, call);
    queue.advance();
}

}  // namespace catena
