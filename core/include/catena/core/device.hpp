// Devices: found by name, given by backends of plugins; each has a caching allocator.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

class DeviceState;

// Counters of a device's allocators, or of one stream's. All but the last are bytes, in the sizes of
// blocks, which are multiples of 64 bytes and a quarter larger than that at most. Not counted is memory
// that the allocators did not give: pinned, foreign, of vendors' libraries.
struct MemoryStats {
    // Held by arrays and by what their calls need beside them, or small and at hand in other threads.
    std::int64_t in_use = 0;
    std::int64_t peak = 0;  // highest in_use since the start, or since reset_peak_memory()
    // Free for what is allocated next. But for blocks of up to 7 KiB, which stay, it goes back by
    // release_cached(), before memory runs out, and where both are over twice the peak and 64 MiB.
    std::int64_t cached = 0;
    std::int64_t system_calls = 0;  // allocations asked of the backend since the start, a number
};

// Bytes of a device as its backend sees them now: free for whoever asks first, which what is cached
// here, or used by other processes, is not. 0 where the backend does not say.
struct MemorySize {
    std::int64_t free = 0;
    std::int64_t total = 0;
};

// A family of devices, as a plugin gives it.
struct BackendInfo {
    std::string name;    // the part before the colon of its devices
    std::string doc;     // what it is
    std::string plugin;  // manifest id
    int devices = 0;
    std::string reason;        // why there is no device; "" if there is one
    bool host_memory = false;  // the host may read and write its memory
    bool async = false;        // work is queued on streams
};

// A handle, cheap to copy; valid for ever. Devices are opened when first asked for.
class Device {
public:
    Device() = default;  // none
    explicit Device(DeviceState* state) : state_(state) {}

    // "NAME:ORDINAL" or "NAME" for ordinal 0. Throws DeviceError that says what is there.
    static Device get(std::string_view name);
    // The thread's device, where new arrays go: the first that the host can write to directly, unless
    // a using_device scope says otherwise.
    static Device current();
    // Where calls run for which their own device has no kernel: as a using_fallback scope says, else
    // as the environment's CATENA_FALLBACK=NAME, else none, and such calls are refused.
    static Device fallback();
    // Every device that the loaded backends report, opened or not: "NAME:ORDINAL".
    static std::vector<std::string> list();
    // Every backend of the loaded plugins, also those without a device, in the order of loading.
    static std::vector<BackendInfo> backends();
    // Those that were opened so far, in that order.
    static std::vector<Device> opened();

    const std::string& name() const;   // "NAME:ORDINAL"
    std::string_view backend() const;  // the part before the colon
    int ordinal() const;
    bool host_accessible() const;  // the host may read and write its memory
    // Waits for all work of all its streams. Throws DeviceError while any of them is recorded, by
    // whichever thread.
    void synchronize() const;
    // For any thread, each at one moment.
    MemoryStats memory() const;  // of all streams
    MemorySize memory_size() const;
    void reset_peak_memory() const;  // to what is in use, also of each stream
    // Gives back what is cached, but for small blocks; while a stream is recorded, when that is over.
    void release_cached() const;
    // Tables that plugins offer for it under an id ("catena.blas/1"), best first; none if there is
    // nothing. Each is the struct that the id names in the ABI. Valid for ever, but a later plugin
    // or pin makes a new list: ask again.
    std::span<const void* const> extensions(const char* id) const;
    int threads() const;            // workers of parallel_for; 1 if the backend has none
    void set_threads(int n) const;  // n < 1: the backend's default

    explicit operator bool() const { return state_ != nullptr; }
    bool operator==(const Device& other) const = default;
    DeviceState* state() const { return state_; }

private:
    DeviceState* state_ = nullptr;
};

// Makes a device the thread's current one until the end of the scope.
class [[nodiscard]] using_device {
public:
    explicit using_device(Device device);
    explicit using_device(std::string_view name) : using_device(Device::get(name)) {}
    using_device(const using_device&) = delete;
    using_device& operator=(const using_device&) = delete;
    ~using_device();

private:
    Device before_;
};

// The same until the end of the scope in which it is called, and without one for the thread's life. An
// empty device: the first that the host can write to directly.
void use_device(Device device);

// In the scope, calls of this thread for which their device has no kernel run on another: inputs are
// copied there and results back, forward and backward. An empty device: such calls are refused.
class [[nodiscard]] using_fallback {
public:
    explicit using_fallback(Device device);
    explicit using_fallback(std::string_view name) : using_fallback(Device::get(name)) {}
    using_fallback(const using_fallback&) = delete;
    using_fallback& operator=(const using_fallback&) = delete;
    ~using_fallback();

private:
    Device device_;
    const Device* before_;
};

// Random numbers: one counter-based Philox stream for each device. They start from initial_seed();
// seed() restarts all of them, or that of one device as if all were: devices of other ordinals draw
// other numbers.
void seed(std::uint64_t value);
void seed(std::uint64_t value, Device device);
// The environment's CATENA_SEED, else 0. Throws InvalidError, as does the first device that is opened,
// unless that is a number of 64 bits.
std::uint64_t initial_seed();
struct RandomState {
    std::uint64_t seed;
    std::uint64_t offset;
};
RandomState random_state(Device device);
// Takes n blocks of the stream for the caller alone and returns where they start. For any thread.
RandomState reserve_random(Device device, std::uint64_t n);
void set_random_state(Device device, RandomState state);

}  // namespace catena
