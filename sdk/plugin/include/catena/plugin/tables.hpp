// Helpers for the tables of a plugin, for plugins with backends or extensions. A plugin that has
// only functions and kernels uses CATENA_PLUGIN() instead.
#pragma once

#include <span>

#include "catena/plugin/error.hpp"

namespace catena::plugin {

template <std::size_t n>
constexpr void copy_text(char (&to)[n], const char* from) {
    for (std::size_t i = 0; i + 1 < n && from[i] != '\0'; ++i) to[i] = from[i];
}
constexpr catena_manifest manifest(const char* id, const char* version, const char* vendor,
                                   const char* license, const char* devices) {
    catena_manifest m = {};
    for (std::size_t i = 0; i < sizeof m.magic; ++i) m.magic[i] = CATENA_MANIFEST_MAGIC[i];
    m.struct_size = sizeof(catena_manifest);
    m.abi_major = CATENA_ABI_MAJOR;
    m.abi_minor_built = CATENA_ABI_MINOR;
    m.abi_minor_needed = CATENA_TARGET_MINOR;
    copy_text(m.id, id);
    copy_text(m.version, version);
    copy_text(m.vendor, vendor);
    copy_text(m.license, license);
    copy_text(m.devices, devices);
    return m;
}

constexpr catena_extension extension(const char* id, const char* device, const void* table,
                                     std::int32_t priority = CATENA_PRIORITY_VENDOR) {
    return {.struct_size = sizeof(catena_extension),
            .priority = priority,
            .id = id,
            .device = device,
            .table = table};
}

// A deterministic kernel for version 1 of a function, with CATENA_REQ_ADD. Callers set the rest.
constexpr catena_kernel plain_kernel(const char* function, int phase, const char* device,
                                     const catena_dtype* types) {
    catena_kernel kernel = {};
    kernel.struct_size = sizeof(catena_kernel);
    kernel.flags = CATENA_KERNEL_ADDS | CATENA_KERNEL_DETERMINISTIC;
    kernel.phase = phase;
    kernel.function = function;
    kernel.version_min = kernel.version_max = 1;
    kernel.device = device;
    kernel.isa = "";
    kernel.types = types;
    kernel.n_types = 1;
    return kernel;
}

// The contents of a plugin. The lists must live as long as the plugin.
struct Contents {
    std::span<const catena_function* const> functions = {};
    std::span<const catena_kernel* const> kernels = {};
    std::span<const catena_backend* const> backends = {};
    std::span<const catena_extension* const> extensions = {};
    decltype(catena_plugin::init) init = nullptr;
    decltype(catena_plugin::deinit) deinit = nullptr;
};
constexpr catena_plugin table_of(const Contents& contents) {
    return {.struct_size = sizeof(catena_plugin),
            .n_functions = static_cast<std::uint32_t>(contents.functions.size()),
            .n_kernels = static_cast<std::uint32_t>(contents.kernels.size()),
            .n_backends = static_cast<std::uint32_t>(contents.backends.size()),
            .n_extensions = static_cast<std::uint32_t>(contents.extensions.size()),
            .reserved = 0,
            .functions = contents.functions.data(),
            .kernels = contents.kernels.data(),
            .backends = contents.backends.data(),
            .extensions = contents.extensions.data(),
            .init = contents.init,
            .deinit = contents.deinit};
}

// [any] Formats a message as printf() does, passes it to the host and returns status.
[[gnu::format(printf, 3, 4)]] catena_status fail(catena_ctx* ctx, catena_status status,
                                                 const char* format, ...);

}  // namespace catena::plugin

// catena_add_plugin() defines both macros.
#if !defined(CATENA_PLUGIN_VENDOR)
#define CATENA_PLUGIN_VENDOR ""
#endif
#if !defined(CATENA_PLUGIN_LICENSE)
#define CATENA_PLUGIN_LICENSE ""
#endif

// The two symbols that a plugin exports. `table` is an expression, the plugin's catena_plugin: it
// is evaluated when a host loads the plugin, and may throw. Use it once in a plugin, at file scope.
#define CATENA_EXPORT_PLUGIN(id, version, devices, table)                                    \
    extern "C" {                                                                             \
    __attribute__((section(CATENA_MANIFEST_SECTION),                                         \
                   used)) constexpr catena_manifest catena_manifest_v1 =                     \
        ::catena::plugin::manifest(id, version, CATENA_PLUGIN_VENDOR, CATENA_PLUGIN_LICENSE, \
                                   devices);                                                 \
    const catena_plugin* CATENA_CALL catena_plugin_entry_v1(const catena_host* host,         \
                                                            catena_ctx* ctx) {               \
        ::catena::plugin::the_host = host;                                                   \
        const catena_plugin* plugin = nullptr;                                               \
        static_cast<void>(::catena::plugin::guarded(ctx, [&] { plugin = &(table); }));       \
        return plugin;                                                                       \
    }                                                                                        \
    }                                                                                        \
    static_assert(true)
