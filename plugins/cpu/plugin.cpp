// cpu.catena, table of contents: the backend "cpu", its threads and its matrix products.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "blas.hpp"
#include "compiler.hpp"
#include "host.hpp"
#include "isa.hpp"
#include "memory.hpp"
#include "openblas.hpp"
#include "threads.hpp"

namespace catena_cpu {

constinit const catena_host* host = nullptr;

catena_status fail(catena_ctx* ctx, catena_status status, const char* format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return host->fail(ctx, status, text);
}

namespace {

constexpr int32_t default_devices = 8;
constexpr int32_t max_devices = 4096;

// A share in the machine's memory and threads: devices differ by number alone.
struct Device {
    int32_t ordinal;
};

catena_status count(catena_ctx* ctx, int32_t* n) {
    *n = default_devices;
    const char* text = std::getenv("CATENA_CPU_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr) return CATENA_OK;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > max_devices)
        return fail(ctx, CATENA_E_INVALID,
                    "[cpu count] CATENA_CPU_DEVICES: expected a number from 1 to %d, got '%s'",
                    max_devices, text);
    *n = static_cast<int32_t>(value);
    return CATENA_OK;
}

catena_status open(catena_ctx* ctx, int32_t ordinal, void** dev) {
    int32_t devices = 0;
    if (const catena_status status = count(ctx, &devices); status != CATENA_OK) return status;
    if (ordinal < 0 || ordinal >= devices)
        return fail(ctx, CATENA_E_DEVICE, "[cpu open] ordinal: expected 0 to %d, got %d",
                    devices - 1, ordinal);
    *dev = new (std::nothrow) Device{ordinal};
    return *dev != nullptr ? CATENA_OK : fail(ctx, CATENA_E_NOMEM, "[cpu open] out of memory");
}

void close(void* dev) { delete static_cast<Device*>(dev); }

const void* get_extension(void*, const char* id) {
    return std::strcmp(id, CATENA_THREADS_1) == 0 ? &threads_table : nullptr;
}

const catena_backend backend = {
    .struct_size = sizeof(catena_backend),
    .flags = CATENA_BACKEND_HOST_MEMORY,
    .name = "cpu",
    .doc = "The processors of this machine. Devices share its memory and threads.",
    .dlpack_type = 1,  // kDLCPU
    .reserved = 0,
    .count = count,
    .open = open,
    .close = close,
    .supports_isa = [](void*, const char* isa) -> int32_t { return supports_isa(isa) ? 1 : 0; },
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .memory = memory,
    .stream_create = nullptr,
    .stream_destroy = nullptr,
    .stream_sync = nullptr,
    .event_create = nullptr,
    .event_destroy = nullptr,
    .event_record = nullptr,
    .event_wait = nullptr,
    .sync = [](catena_ctx*, void*) -> catena_status { return CATENA_OK; },
    .get_extension = get_extension,
};
const catena_backend* const backends[] = {&backend};

const catena_extension blas = {
    .struct_size = sizeof(catena_extension),
    .priority = CATENA_PRIORITY_VENDOR,
    .id = CATENA_BLAS_1,
    .device = "cpu",
    .table = &blas_table,
};
const catena_extension compiler = {
    .struct_size = sizeof(catena_extension),
    .priority = CATENA_PRIORITY_VENDOR,
    .id = CATENA_COMPILER_DRAFT_1,
    .device = "cpu",
    .table = &compiler_table,
};
const catena_extension targets = {
    .struct_size = sizeof(catena_extension),
    .priority = CATENA_PRIORITY_PORTABLE,
    .id = CATENA_TARGETS_DRAFT_1,
    .device = "cpu",
    .table = &targets_table,
};
const catena_extension* const extensions[] = {&blas, &compiler, &targets};

// The environment is read and OpenBLAS loaded here, where one thread runs. Without OpenBLAS memory
// and threads still serve; products say what is missing.
catena_status init(const catena_host*, catena_ctx* ctx) {
    if (const OpenBlas& loaded = openblas(); loaded.error[0] != '\0')
        host->log(ctx, CATENA_LOG_WARNING, loaded.error);
    return CATENA_OK;
}

const catena_plugin plugin = {
    .struct_size = sizeof(catena_plugin),
    .n_functions = 0,
    .n_kernels = 0,
    .n_backends = 1,
    .n_extensions = 3,
    .reserved = 0,
    .functions = nullptr,
    .kernels = nullptr,
    .backends = backends,
    .extensions = extensions,
    .init = init,
    .deinit = [] { pool.stop(); },
};

}  // namespace
}  // namespace catena_cpu

[[gnu::section(CATENA_MANIFEST_SECTION), gnu::used]] const catena_manifest catena_manifest_v1 = {
    .magic = {'C', 'A', 'T', 'E', 'N', 'A', 'P', 'L'},
    .struct_size = sizeof(catena_manifest),
    .abi_major = CATENA_ABI_MAJOR,
    .abi_minor_built = CATENA_ABI_MINOR,
    .abi_minor_needed = CATENA_TARGET_MINOR,
    .flags = 0,
    .reserved = 0,
    .id = "org.catena.cpu",
    .version = "0.1.0",
    .vendor = "The catena authors",
    .license = "BSD-2-Clause",
    .devices = "cpu",
};

const catena_plugin* catena_plugin_entry_v1(const catena_host* host, catena_ctx*) {
    catena_cpu::host = host;
    return &catena_cpu::plugin;
}
