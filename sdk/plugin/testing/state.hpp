// The state of a World: the plugins that it loaded, and the devices of their backends.
#pragma once

#include <functional>
#include <map>

#include "testing/functions.hpp"
#include "testing/library.hpp"

namespace catena::testing {
namespace detail {

// Whether this machine runs kernels for an instruction set. "": any machine.
bool has_isa(const std::string& isa);

// A device other than the CPU. For a call, arrays and their guards are copied to it and back.
class Device {
public:
    // Returns the device, opened once in a process and closed at its end, or null if there is none.
    static const Device* find(const catena_backend& backend, World& world) {
        static std::map<const catena_backend*, std::unique_ptr<Device>> all;
        const auto [entry, added] = all.try_emplace(&backend);
        if (added) {
            catena_ctx ctx{&world, {}, {}};
            std::int32_t n = 0;
            if (backend.count(&ctx, &n) == CATENA_OK && n > 0)
                entry->second = std::make_unique<Device>(backend, ctx);
        }
        return entry->second.get();
    }
    Device(const catena_backend& backend, catena_ctx& ctx) : table(backend) {
        check(table.open(&ctx, 0, &dev), ctx);
        if ((table.flags & CATENA_BACKEND_ASYNC) != 0)
            check(table.stream_create(&ctx, dev, &stream), ctx);
    }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device() {
        if (stream != nullptr) table.stream_destroy(dev, stream);
        table.close(dev);
    }

    void copy(catena_ctx& ctx, void* to, const void* from, std::size_t bytes, int direction) const {
        check(table.copy(&ctx, dev, stream, to, from, bytes, direction), ctx);
    }
    void sync(catena_ctx& ctx) const {
        check(stream != nullptr ? table.stream_sync(&ctx, dev, stream) : table.sync(&ctx, dev),
              ctx);
    }
    void check(catena_status status, const catena_ctx& ctx) const {
        if (status == CATENA_OK) return;
        throw Failure(status, "[" + std::string(table.name) + ":0] " +
                                  (ctx.error.empty() ? "it gave no reason" : ctx.error));
    }

    const catena_backend& table;
    void* dev = nullptr;
    catena_stream* stream = nullptr;
};

// The memory of an array on a device, for one call. The array may be destroyed first.
class Placed {
public:
    Placed(const Device& device, catena_ctx& ctx, Array& array)
        : device_(device), ctx_(ctx), array_(array), bytes_(array.memory_bytes()) {
        void* memory = nullptr;
        device.check(device.table.alloc(&ctx, device.dev, device.stream, bytes_, &memory), ctx);
        memory_ = {memory, [&device, n = bytes_](void* block) {
                       device.table.free(device.dev, device.stream, block, n);
                   }};
        device.copy(ctx, memory, array.memory(), bytes_, CATENA_COPY_HOST_TO_DEVICE);
    }
    // Returns the address of the first element, less the array's shift.
    std::byte* data() const { return static_cast<std::byte*>(memory_.get()) + Array::guard; }
    void fetch() {
        device_.copy(ctx_, array_.memory(), memory_.get(), bytes_, CATENA_COPY_DEVICE_TO_HOST);
    }

private:
    const Device& device_;
    catena_ctx& ctx_;
    Array& array_;
    std::size_t bytes_;
    std::unique_ptr<void, std::function<void(void*)>> memory_;
};

}  // namespace detail

struct World::State {
    explicit State(World& w) : world(w) {}

    void load(const std::string& path, bool given);
    // `given`: it is one of the plugins to test.
    void add(const detail::Library& library, bool given);
    bool runs(const catena_kernel& k) const;
    // Returns the kernel's device; null for host memory, or if the device is missing.
    const detail::Device* device_of(const catena_kernel& k) const {
        const auto found = devices.find(k.device);
        return found == devices.end() ? nullptr : found->second;
    }
    // Returns the values of all attributes, with the defaults of those that are not given.
    std::vector<catena_value> bind(const catena_function& f, const Attrs& attrs) const;
    // Returns the kernels for these dtypes, best first.
    std::vector<const catena_kernel*> candidates(const catena_function& f, int phase,
                                                 const detail::Metas& x, const detail::Metas& y,
                                                 const Options& options) const;
    // Returns the forward kernels that save the state for a backward kernel; none without state.
    std::vector<const catena_kernel*> before(const catena_kernel& backward, const detail::Metas& x,
                                             const detail::Metas& y) const;
    const void* const* extensions(const std::string& device, const std::string& id) const;

    World& world;
    std::string own;  // the folder of catena's own plugins
    std::map<std::string, const catena_function&> functions;
    std::set<std::string> names;
    std::map<std::string, std::string> paths;  // by id
    // Devices by name; null if the backend has no device.
    std::map<std::string, const detail::Device*> devices;
    std::vector<const catena_extension*> all_extensions;
    std::vector<const catena_kernel*> kernels;
    std::map<std::pair<std::string, int>, std::vector<const catena_kernel*>> by_phase;
    std::map<const void*, std::string> origins;
    std::set<std::string> given;  // the plugins to test, by id
    std::string ran;
    std::size_t n_runs = 0;
    std::set<const catena_kernel*> kernels_run;
    // Results of candidates() for calls that any kernel may serve, by function, phase and dtypes.
    mutable std::map<std::vector<std::uint64_t>, std::vector<const catena_kernel*>> selected;
    std::uint64_t began = 0;  // `drawn` when the last forward() began
};

}  // namespace catena::testing
