// Devices: found by name, provided by backends of plugins. Each has a caching allocator.
#pragma once

#include <catena/abi/base.h>
#include <catena/core/memory.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct catena_backend;

namespace catena {

class DeviceState;

// Counters of a device's allocators, or of one stream's. All but the last are bytes, in sizes of
// blocks, which are multiples of 64 bytes and at most a quarter larger than requested. Memory that
// does not come from the allocators is not counted: pinned, foreign, of vendor libraries.
struct MemoryStats {
    // Used by arrays and temporary memory of calls, or cached as small blocks in other threads.
    std::int64_t in_use = 0;
    std::int64_t peak = 0;  // highest in_use since the start, or since reset_peak_memory()
    // Free for the next allocations. Except for blocks of up to 7 KiB, it is released by
    // release_cached(), before memory runs out, and when both are over twice the peak and 64 MiB.
    std::int64_t cached = 0;
    std::int64_t system_calls = 0;  // number of allocations from the backend since the start
};

// Memory of a device in bytes, as the backend sees it now. Free memory excludes the caches of this
// process and memory of other processes. 0 if the backend does not report it.
struct MemorySize {
    std::int64_t free = 0;
    std::int64_t total = 0;
};

// A family of devices, provided by a plugin.
struct BackendInfo {
    std::string name;    // the part before the colon of its devices
    std::string doc;     // description
    std::string plugin;  // manifest id
    int devices = 0;
    std::string reason;        // why there is no device; "" if there is one
    bool host_memory = false;  // the host can access its memory directly
    bool async = false;        // work is launched on streams
};

// A handle that is cheap to copy and always stays valid. Devices are opened on first use.
class Device {
public:
    Device() = default;  // empty
    explicit Device(DeviceState* state) : state_(state) {}

    // "NAME:ORDINAL", or "NAME" for ordinal 0. Throws DeviceError with the available devices.
    static Device get(std::string_view name);
    // The thread's current device, on which new arrays are made: the first that the host can access
    // directly, unless a using_device scope sets another.
    static Device current();
    // The device that runs calls for which their own device has no kernel: that of a using_fallback
    // scope, else of the environment's CATENA_FALLBACK=NAME. If empty, such calls throw an error.
    static Device fallback();
    // Every device that the loaded backends report, opened or not: "NAME:ORDINAL".
    static std::vector<std::string> list();
    // Every backend of the loaded plugins, also those without a device, in the order of loading.
    static std::vector<BackendInfo> backends();
    // The devices that were opened so far, in that order.
    static std::vector<Device> opened();

    const std::string& name() const;   // "NAME:ORDINAL"
    std::string_view backend() const;  // the part before the colon
    int ordinal() const;
    bool host_accessible() const;  // the host can access its memory directly
    // Waits for all work on all its streams. Throws DeviceError while a thread records one of them.
    void synchronize() const;
    // Thread-safe; each call is a consistent snapshot.
    MemoryStats memory() const;  // of all streams
    MemorySize memory_size() const;
    void reset_peak_memory() const;  // to the memory in use; also for each stream
    // Releases cached memory, except small blocks; while a stream is recorded, after the recording.
    void release_cached() const;
    // Tables that plugins provide for it under an id ("catena.blas/1"), highest priority first.
    // Each has the struct of that id in the ABI. The list stays valid, but a later plugin or pin
    // makes a new one, so do not cache it.
    std::span<const void* const> extensions(const char* id) const;
    int threads() const;            // threads of parallel_for; 1 if the backend has none
    void set_threads(int n) const;  // n < 1: the backend's default

    explicit operator bool() const { return state_ != nullptr; }
    bool operator==(const Device& other) const = default;
    DeviceState* state() const { return state_; }

private:
    DeviceState* state_ = nullptr;
};

// Makes a device the thread's current one until the end of the scope.
struct [[nodiscard]] using_device : private using_value<DeviceState*> {
    [[nodiscard]] explicit using_device(Device device);
    [[nodiscard]] explicit using_device(std::string_view name) : using_device(Device::get(name)) {}
};

// The same until the end of the enclosing scope, or, without one, of the thread. An empty device
// means the first that the host can access directly.
void use_device(Device device);

// In the scope, calls of this thread whose device has no kernel run on another device: inputs are
// copied there and results back, forward and backward. With an empty device such calls throw.
class [[nodiscard]] using_fallback {
public:
    [[nodiscard]] explicit using_fallback(Device device);
    [[nodiscard]] explicit using_fallback(std::string_view name)
        : using_fallback(Device::get(name)) {}

private:
    Device device_;
    using_value<const Device*> scope_;
};

// Random numbers: one counter-based Philox stream for each device. They start from initial_seed().
// seed() restarts all streams, or that of one device as if all were restarted. Devices with
// different ordinals draw different numbers.
void seed(std::uint64_t value);
void seed(std::uint64_t value, Device device);
// $CATENA_SEED, or 0. Throws InvalidError, as opening a device does, if that is no 64-bit number.
std::uint64_t initial_seed();
struct RandomState {
    std::uint64_t seed;
    std::uint64_t offset;
};
RandomState random_state(Device device);
// Reserves n blocks of the stream and returns their start. Thread-safe.
RandomState reserve_random(Device device, std::uint64_t n);
void set_random_state(Device device, RandomState state);
// Until the end of the scope, keeps the states that this thread reserves, or, with `again`, returns
// the kept ones instead of new ones, in the same order. null: changes nothing. Scopes may be
// nested. Reserving more than were kept throws InvalidError.
class [[nodiscard]] using_draws {
public:
    [[nodiscard]] using_draws(std::vector<RandomState>* states, bool again) noexcept;
    using_draws(using_draws&&) = delete;
    ~using_draws();

private:
    friend RandomState reserve_random(Device device, std::uint64_t n);
    RandomState next(Device device, std::uint64_t n);

    std::vector<RandomState>* const states_;
    const bool again_;
    using_draws* const outer_;
    std::size_t used_ = 0;
};
// Whether the thread is in such a scope.
bool keeps_draws() noexcept;

// ---- the backend, for programs that use an extension's table directly

// The table that the backend provides under an id ("catena.threads/1"), or null. Stays valid.
const void* backend_extension(Device device, const char* id);

// The backend's table, and the result of its open(), which its calls take as dev.
const catena_backend& backend_table(Device device);
void* backend_device(Device device);

// Runs a call of the backend and throws its error with the prefix "[what] ".
void call_backend(Device device, std::string_view what,
                  const std::function<catena_status(catena_ctx*, void*)>& call);

}  // namespace catena
