// The plugin table of cuda.catena: the backend "cuda", extensions, matrix products and compiler.
#include "backend.hpp"

#include <cstdlib>
#include <cstring>

#include "catena/abi/ext/draft/about.h"

namespace catena_cuda {

namespace {

// Created by the first call and never destroyed, so there is no static constructor.
Settings& current_settings() {
    static auto* const all = new Settings;
    return *all;
}

std::string variable(const char* name) {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text != nullptr ? text : "";
}

const catena_about about_table = {
    .struct_size = sizeof(catena_about),
    .reserved = 0,
    .text = [](void* dev) -> const char* { return device_of(dev).about; },
};

struct Extension {
    const char* id;
    const void* table;
};
constexpr Extension backend_extensions[] = {
    {CATENA_MEMORY_DRAFT_1, &memory_table}, {CATENA_EVENTS_DRAFT_1, &events_table},
    {CATENA_GRAPH_DRAFT_1, &graph_table},   {CATENA_IPC_DRAFT_1, &ipc_table},
    {CATENA_VENDOR_DRAFT_1, &vendor_table}, {CATENA_ABOUT_DRAFT_1, &about_table},
};

const void* get_extension(void*, const char* id) {
    for (const Extension& e : backend_extensions)
        if (std::strcmp(e.id, id) == 0) return e.table;
    return nullptr;
}

const catena_backend backend = {
    .struct_size = sizeof(catena_backend),
    .flags = CATENA_BACKEND_ASYNC,
    .name = "cuda",
    .doc = "NVIDIA's GPUs, by the CUDA runtime.",
    .dlpack_type = 2,  // kDLCUDA
    .reserved = 0,
    .count = count,
    .open = open,
    .close = close,
    .supports_isa = supports_isa,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .memory = memory,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .sync = sync,
    .get_extension = get_extension,
};
const catena_backend* const backends[] = {&backend};

using catena::plugin::extension;
constexpr catena_extension blas = extension(CATENA_BLAS_1, "cuda", &blas_table);
constexpr catena_extension compiler = extension(CATENA_COMPILER_1, "cuda", &compiler_table);
constexpr catena_extension vendor = extension(CATENA_VENDOR_DRAFT_1, "cuda", &vendor_table);
const catena_extension* const extensions[] = {&blas, &compiler, &vendor};

catena_status init(const catena_host*, catena_ctx* ctx) {
    return guarded(ctx, "init", [] {
        current_settings() = {variable("CATENA_CUBLAS"), variable("CATENA_CUDNN_LIBRARY"),
                              variable("CATENA_NVRTC"), variable("CATENA_CUDA_TF32") == "1"};
    });
}

constexpr catena_plugin plugin =
    catena::plugin::table_of({.backends = backends, .extensions = extensions, .init = init});

}  // namespace

const Settings& settings() { return current_settings(); }

}  // namespace catena_cuda

// Names no devices, because it has no kernels: hosts load it before plugins with CUDA kernels.
CATENA_EXPORT_PLUGIN("org.catena.cuda", CATENA_VERSION, "", catena_cuda::plugin);
