/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_PLUGIN_H
#define CATENA_ABI_PLUGIN_H
#include "catena/abi/backend.h"
#include "catena/abi/host.h"
#define CATENA_MANIFEST_MAGIC "CATENAPL"
#define CATENA_MANIFEST_SECTION ".catena"
typedef struct catena_manifest {
    char magic[8];
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor_built;
    uint16_t abi_minor_needed;
    uint16_t flags;
    uint32_t reserved;
    char id[96];
    char version[32];
    char vendor[64];
    char license[32];
    char devices[64];
} catena_manifest;
typedef struct catena_extension {
    uint32_t struct_size;
    int32_t priority;
    const char *id;
    const char *device;
    const void *table;
} catena_extension;
typedef struct catena_plugin {
    uint32_t struct_size;
    uint32_t n_functions;
    uint32_t n_kernels;
    uint32_t n_backends;
    uint32_t n_extensions;
    uint32_t reserved;
    const catena_function *const *functions;
    const catena_kernel *const *kernels;
    const catena_backend *const *backends;
    const catena_extension *const *extensions;
    catena_status(CATENA_CALL *init)(const catena_host *host, catena_ctx *ctx);
    void(CATENA_CALL *deinit)(void);
} catena_plugin;
#ifdef __cplusplus
extern "C" {
#endif
extern CATENA_EXPORT const catena_manifest catena_manifest_v1;
CATENA_EXPORT const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *host,
                                                                      catena_ctx *ctx);
#ifdef __cplusplus
}
#endif
#endif
