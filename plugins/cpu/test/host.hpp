// Loads cpu.catena as a host does, with a table of only the functions that it needs.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "catena/abi.h"
#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/threads.h"
#include "catena/abi/half.h"

namespace cpu_test {

// The text of the last failure, and the last line of the log.
inline std::string failure;
inline std::string logged;

inline catena_status CATENA_CALL keep_failure(catena_ctx*, catena_status status, const char* text) {
    failure = text;
    return status;
}

inline void CATENA_CALL keep_log(catena_ctx*, int32_t, const char* text) { logged = text; }

// Loads the plugin and opens device 0; the destructor closes the device and calls deinit().
class Plugin {
public:
    Plugin() {
        void* library = dlopen(CATENA_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            throw std::runtime_error(dlerror());  // NOLINT(concurrency-mt-unsafe)
        manifest = static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"));
        const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
            dlsym(library, "catena_plugin_entry_v1"));
        host_.struct_size = sizeof host_;
        host_.abi_major = CATENA_ABI_MAJOR;
        host_.log = keep_log;
        host_.fail = keep_failure;
        table = entry(&host_, nullptr);
        backend = table->backends[0];
        blas = static_cast<const catena_blas*>(table->extensions[0]->table);
        bfloat16 = static_cast<const catena_blas*>(table->extensions[3]->table);
        if (table->init(&host_, nullptr) != CATENA_OK ||
            backend->open(nullptr, 0, &dev) != CATENA_OK)
            throw std::runtime_error(failure);
        threads = static_cast<const catena_threads*>(backend->get_extension(dev, CATENA_THREADS_1));
    }

    ~Plugin() {
        backend->close(dev);
        table->deinit();
    }

    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;

    const catena_manifest* manifest = nullptr;
    const catena_plugin* table = nullptr;
    const catena_backend* backend = nullptr;
    const catena_threads* threads = nullptr;
    const catena_blas* blas = nullptr;
    const catena_blas* bfloat16 = nullptr;
    void* dev = nullptr;

private:
    catena_host host_ = {};
};

inline Plugin& plugin() {
    static Plugin loaded;
    return loaded;
}

}  // namespace cpu_test
