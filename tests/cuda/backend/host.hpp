// Loads the module named by CUDA_PLUGIN like a host, with a minimal host table. The tests call the
// same runtime as the module: NVIDIA's, whose streams are those of the driver, or the emulator's, which
// counts memory to the byte and detects each wrong call.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catena/abi.h"
#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/draft/about.h"
#include "catena/abi/ext/draft/events.h"
#include "catena/abi/ext/draft/graph.h"
#include "catena/abi/ext/draft/ipc.h"
#include "catena/abi/ext/draft/memory.h"
#include "catena/abi/ext/draft/vendor.h"
#include "emulator/control.h"

namespace cuda_test {

inline thread_local std::string failure;  // message of the thread's last failure

inline catena_ctx* const ctx =
    reinterpret_cast<catena_ctx*>(8);  // for all calls; never dereferenced

inline catena_status CATENA_CALL keep_failure(catena_ctx*, catena_status status, const char* text) {
    failure = text;
    return status;
}

// The loaded plugin, its tables and its opened devices.
class Plugin {
public:
    Plugin() {
        const char* const path = std::getenv("CUDA_PLUGIN");
        if (path == nullptr) throw std::runtime_error("expected a path in CUDA_PLUGIN");
        void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) throw std::runtime_error(dlerror());
        manifest = static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"));
        const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
            dlsym(library, "catena_plugin_entry_v1"));
        static catena_host host = {};
        host.struct_size = sizeof host;
        host.abi_major = CATENA_ABI_MAJOR;
        host.fail = keep_failure;
        table = entry(&host, nullptr);
        backend = table->backends[0];
        blas = static_cast<const catena_blas*>(table->extensions[0]->table);
        if (table->init(&host, nullptr) != CATENA_OK) throw std::runtime_error(failure);
    }

    // Opens the device on the first call.
    void* dev(int ordinal = 0) {
        while (static_cast<int>(devices_.size()) <= ordinal) {
            void* made = nullptr;
            if (backend->open(ctx, static_cast<int32_t>(devices_.size()), &made) != CATENA_OK)
                throw std::runtime_error(failure);
            devices_.push_back(made);
        }
        return devices_[static_cast<std::size_t>(ordinal)];
    }
    template <class Table>
    const Table& extension(const char* id) {
        const void* found = backend->get_extension(dev(), id);
        if (found == nullptr) throw std::runtime_error(std::string("no ") + id);
        return *static_cast<const Table*>(found);
    }

    const catena_manifest* manifest = nullptr;
    const catena_plugin* table = nullptr;
    const catena_backend* backend = nullptr;
    const catena_blas* blas = nullptr;

private:
    std::vector<void*> devices_;
};

inline Plugin& plugin() {
    static auto* const loaded = new Plugin;
    return *loaded;
}
inline const catena_backend& backend() { return *plugin().backend; }
inline const catena_memory& memory() {
    return plugin().extension<catena_memory>(CATENA_MEMORY_DRAFT_1);
}

// Whether the library is available. A machine may lack cuDNN or, for the emulator, its headers.
inline bool is_here(const char* library) {
    void* dl = nullptr;
    int64_t version = 0;
    const auto& vendor = plugin().extension<catena_vendor>(CATENA_VENDOR_DRAFT_1);
    if (vendor.open(ctx, library, &dl, &version) != CATENA_E_UNSUPPORTED) return true;
    MESSAGE("skipped: ", failure);
    return false;
}

inline int device_count() {
    int n = 0;
    REQUIRE(cudaGetDeviceCount(&n) == cudaSuccess);
    return n;
}
// The ordinal of the second device, or of the first if there is only one.
inline int second() { return device_count() > 1 ? 1 : 0; }
struct MemoryLeft {
    uint64_t left = 0;
    uint64_t all = 0;
};
inline MemoryLeft memory_left(int ordinal = 0) {
    MemoryLeft m;
    REQUIRE(backend().memory(ctx, plugin().dev(ordinal), &m.left, &m.all) == CATENA_OK);
    return m;
}

// A stream of a device and the memory allocated on it; the destructor frees both.
class Stream {
public:
    explicit Stream(int ordinal = 0) : dev(plugin().dev(ordinal)) {
        REQUIRE(backend().stream_create(ctx, dev, &stream) == CATENA_OK);
    }
    ~Stream() {
        for (const auto& [data, bytes] : blocks_) backend().free(dev, stream, data, bytes);
        backend().stream_destroy(dev, stream);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    template <class T>
    T* alloc(std::size_t n) {
        void* data = nullptr;
        REQUIRE(backend().alloc(ctx, dev, stream, n * sizeof(T), &data) == CATENA_OK);
        blocks_.emplace_back(data, n * sizeof(T));
        return static_cast<T*>(data);
    }
    template <class T>
    T* put(const std::vector<T>& values) {
        T* data = alloc<T>(values.size());
        REQUIRE(backend().copy(ctx, dev, stream, data, values.data(), values.size() * sizeof(T),
                               CATENA_COPY_HOST_TO_DEVICE) == CATENA_OK);
        return data;
    }
    template <class T>
    std::vector<T> get(const T* data, std::size_t n) {
        std::vector<T> values(n);
        REQUIRE(backend().copy(ctx, dev, stream, values.data(), data, n * sizeof(T),
                               CATENA_COPY_DEVICE_TO_HOST) == CATENA_OK);
        sync();
        return values;
    }
    void sync() { REQUIRE(backend().stream_sync(ctx, dev, stream) == CATENA_OK); }

    void* const dev;
    catena_stream* stream = nullptr;

private:
    std::vector<std::pair<void*, std::size_t>> blocks_;
};

// Blocks a stream from here until go().
class Gate {
public:
    // The host function deletes the flag, because it may run after the destructor.
    explicit Gate(catena_stream* stream) : open_(new std::atomic<bool>(false)) {
        const auto wait = [](void* user) {
            auto* const open = static_cast<std::atomic<bool>*>(user);
            while (!*open) std::this_thread::sleep_for(std::chrono::microseconds(50));
            delete open;
        };
        REQUIRE(cudaLaunchHostFunc(reinterpret_cast<cudaStream_t>(stream), wait, open_) ==
                cudaSuccess);
    }
    ~Gate() { go(); }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    void go() {
        if (open_ != nullptr) *open_ = true;
        open_ = nullptr;
    }

private:
    std::atomic<bool>* open_;
};

inline bool says(const std::string& part) { return failure.find(part) != std::string::npos; }

}  // namespace cuda_test
