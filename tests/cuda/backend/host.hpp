// Loads the emulated cuda.catena the way a host does, with the smallest table that serves it.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "catena/abi.h"
#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/draft/about.h"
#include "catena/abi/ext/draft/events.h"
#include "catena/abi/ext/draft/graph.h"
#include "catena/abi/ext/draft/ipc.h"
#include "catena/abi/ext/draft/memory.h"
#include "catena/abi/ext/draft/vendor.h"

namespace cuda_test {

inline thread_local std::string failure;  // text of the thread's last one

inline catena_ctx* const ctx =
    reinterpret_cast<catena_ctx*>(8);  // of every call; never looked into

inline catena_status CATENA_CALL keep_failure(catena_ctx*, catena_status status, const char* text) {
    failure = text;
    return status;
}

// The plugin, from its entry to its end, and its devices.
class Plugin {
public:
    Plugin() {
        void* library = dlopen(CUDA_PLUGIN, RTLD_NOW | RTLD_LOCAL);
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

    // Opened on the first call.
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

// A stream of a device, and memory on it, until the end of a test.
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

// The stream stands still from here on, until go().
class Gate {
public:
    explicit Gate(catena_stream* stream);
    ~Gate() { go(); }
    void go();

private:
    struct State;
    State* state_;
};

inline bool says(const std::string& part) { return failure.find(part) != std::string::npos; }

}  // namespace cuda_test
