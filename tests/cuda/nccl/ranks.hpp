// Ranks as threads that load the communicator "nccl" like a host; each has a device, if there are
// enough. The tests call the same CUDA runtime as the module.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <atomic>
#include <catena/plugin/communicator.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "emulator/control.h"

namespace nccl_test {

namespace plugin = catena::plugin;

inline thread_local std::string failure;  // message of the thread's last failure
inline catena_ctx* const ctx = reinterpret_cast<catena_ctx*>(8);  // never dereferenced

// Loads the plugin whose path the environment variable has.
inline const catena_communicator& table_of(const char* variable, const catena_host& host) {
    const char* const path = std::getenv(variable);
    void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(path == nullptr ? variable : dlerror());
    const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
        dlsym(library, "catena_plugin_entry_v1"));
    const catena_extension& found = *entry(&host, nullptr)->extensions[0];
    CHECK(std::string(found.id) == CATENA_COMMUNICATOR_1);
    CHECK(std::string(found.device).empty());
    return *static_cast<const catena_communicator*>(found.table);
}
inline const catena_communicator& table() {
    static const auto* const loaded = [] {
        static const void* extensions[2] = {};
        static catena_host host = {};
        host.struct_size = sizeof host;
        host.abi_major = CATENA_ABI_MAJOR;
        host.fail = [](catena_ctx* where, catena_status status, const char* text) {
            if (where != nullptr) failure = text;
            return status;
        };
        host.extensions = [](catena_ctx*, const char*) -> const void* const* { return extensions; };
        extensions[0] = &table_of("THREADS_PLUGIN", host);
        return &table_of("CUDA_PLUGIN", host);
    }();
    return *loaded;
}

inline int device_count() {
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) return 0;
    return n;
}
// The emulator's NCCL allows ranks that share a device; NVIDIA's does not.
inline int most_ranks() { return emulated ? 3 : device_count(); }

// A name for a group.
inline std::string new_address() {
    static std::atomic<int> groups = 0;
    return "group " + std::to_string(groups++);
}

constexpr catena_dtype f32 = {CATENA_CODE_FLOAT, 32, 1}, i16 = {CATENA_CODE_INT, 16, 1},
                       i32 = {CATENA_CODE_INT, 32, 1};
using Values = std::vector<double>;

// One rank of a group, with a stream and memory on its device. Owns them.
class Rank {
public:
    Rank(int rank, int size, const std::string& address, double timeout = 600)
        : device(emulated ? rank % device_count() : rank) {
        CHECK(cudaSetDevice(device) == cudaSuccess);
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
        const catena_comm_options options = {sizeof options,  rank,   size, device,
                                             address.c_str(), timeout};
        status = table().open(ctx, &options, &comm);
        text = status == CATENA_OK ? "" : failure;
        if (status == CATENA_OK) info = info_of(comm);
    }
    ~Rank() {
        close();
        for (void* data : blocks_) cudaFree(data);
        cudaStreamDestroy(stream);
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

    static catena_comm_info info_of(catena_comm* comm) {
        catena_comm_info info = {};
        info.struct_size = sizeof info;
        table().info(comm, &info);
        return info;
    }
    void close() {
        if (comm != nullptr) table().close(comm);
        comm = nullptr;
    }

    // Copies to the device; the memory lives as long as this object.
    char* copy(const void* from, std::size_t bytes) {
        char* data = nullptr;
        if (bytes == 0) return nullptr;
        CHECK(cudaMalloc(reinterpret_cast<void**>(&data), bytes) == cudaSuccess);
        blocks_.push_back(data);
        CHECK(cudaMemcpyAsync(data, from, bytes, cudaMemcpyHostToDevice, stream) == cudaSuccess);
        return data;
    }
    void fetch(void* to, const void* data, std::size_t bytes) const {
        if (bytes == 0) return;
        CHECK(cudaMemcpyAsync(to, data, bytes, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
        CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    }
    char* put(const Values& values) {
        const std::vector<float> floats(values.begin(), values.end());
        return copy(floats.data(), floats.size() * sizeof(float));
    }
    char* room(std::size_t n) { return put(Values(n, -1)); }
    Values get(const void* data, std::size_t n) const {
        std::vector<float> floats(n);
        fetch(floats.data(), data, n * sizeof(float));
        return {floats.begin(), floats.end()};
    }

    catena_operation operation(int kind, const void* send, void* recv, std::uint64_t count) const {
        catena_operation o = {};
        o.struct_size = sizeof o;
        o.kind = kind;
        o.dtype = f32;
        o.send = send;
        o.recv = recv;
        o.count = count;
        o.device_type = 2;
        o.device_id = device;
        o.stream = reinterpret_cast<catena_stream*>(stream);
        o.label = "w";
        return o;
    }
    catena_work* start(const catena_operation& o) {
        catena_work* work = nullptr;
        status = table().start(ctx, comm, &o, &work);
        text = status == CATENA_OK ? "" : failure;
        return work;
    }
    // Waits on the host, and releases. Returns the text of the failure, or empty.
    std::string finish(catena_work* work) {
        if (work == nullptr) return text;
        status = table().wait(ctx, work);
        text = status == CATENA_OK ? "" : failure;
        table().release(work);
        return text;
    }
    std::string run(const catena_operation& o) { return finish(start(o)); }
    void wait_on(catena_work* work) const {
        CHECK(table().wait_on(ctx, work, reinterpret_cast<catena_stream*>(stream)) == CATENA_OK);
    }

    const int device;
    cudaStream_t stream = nullptr;
    catena_comm* comm = nullptr;
    catena_comm_info info = {};
    catena_status status = CATENA_OK;  // of the last call
    std::string text;                  // its message

private:
    std::vector<void*> blocks_;
};

// Runs body(rank) in a thread for each rank.
inline void in_threads(int n, const std::function<void(int)>& body) {
    table();
    std::vector<std::thread> threads;
    for (int r = 0; r < n; ++r)
        threads.emplace_back([&, r] {
            try {
                body(r);
            } catch (const std::exception& e) {
                FAIL_CHECK(e.what());
            }
        });
    for (std::thread& t : threads) t.join();
}
inline void with_ranks(int n, const std::function<void(Rank&)>& body, double timeout = 600) {
    const std::string address = new_address();
    in_threads(n, [&](int r) {
        Rank rank(r, n, address, timeout);
        if (!emulated && rank.status == CATENA_E_UNSUPPORTED) {
            std::printf("skipped: %s\n", rank.text.c_str());  // no NCCL here
            return;
        }
        CHECK_MESSAGE(rank.status == CATENA_OK, rank.text);
        if (rank.status == CATENA_OK) body(rank);
    });
}
// ... in groups of 1, 2 and 3 ranks, if there are enough devices.
inline void with_all_sizes(const std::function<void(Rank&)>& body) {
    for (int n = 1; n <= 3; ++n) {
        if (n <= most_ranks()) with_ranks(n, body);
        else MESSAGE("skipped: ", n, " ranks, which need ", n, " GPUs");
    }
}

// Blocks a stream from here until go().
class Gate {
public:
    explicit Gate(cudaStream_t stream) : open_(new std::atomic<bool>(false)) {
        const auto wait = [](void* user) {
            auto* const open = static_cast<std::atomic<bool>*>(user);
            while (!*open) std::this_thread::sleep_for(std::chrono::microseconds(50));
            delete open;
        };
        CHECK(cudaLaunchHostFunc(stream, wait, open_) == cudaSuccess);
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

}  // namespace nccl_test
