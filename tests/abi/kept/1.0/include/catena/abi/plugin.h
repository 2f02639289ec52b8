/* A plugin: a flat manifest, which can be read without loading, and an entry that returns a
 * table. */
#ifndef CATENA_ABI_PLUGIN_H
#define CATENA_ABI_PLUGIN_H

#include "catena/abi/backend.h"
#include "catena/abi/host.h"

#define CATENA_MANIFEST_MAGIC "CATENAPL"  /* 8 bytes, no terminator */
#define CATENA_MANIFEST_SECTION ".catena" /* where hosts look for it */

/* Placed in section .catena. It contains no pointers: hosts read it from the file without
 * running anything. Texts end with a zero byte; flags and reserved are 0. */
typedef struct catena_manifest {
    char magic[8]; /* CATENA_MANIFEST_MAGIC */
    uint32_t struct_size;
    uint16_t abi_major;        /* CATENA_ABI_MAJOR */
    uint16_t abi_minor_built;  /* information only */
    uint16_t abi_minor_needed; /* older hosts refuse the plugin */
    uint16_t flags;            /* 0 */
    uint32_t reserved;
    char id[96];      /* stable, reverse DNS: "org.catena.activation" */
    char version[32]; /* the plugin's own: "1.2.3" */
    char vendor[64];  /* the author, for display */
    char license[32]; /* SPDX: "MIT" */
    char devices[64]; /* names of the backends it has kernels for: "cpu,cuda" */
} catena_manifest;

/* A table for other plugins, selected by id and device, highest priority first. */
typedef struct catena_extension {
    uint32_t struct_size;
    int32_t priority;   /* highest first */
    const char *id;     /* "catena.blas/1"; third parties "org.example.thing/1" */
    const char *device; /* name of a backend, or "": belongs to no device */
    const void *table;  /* the struct of this id */
} catena_extension;

/* The contents of the plugin. The host checks all of it, then registers all or nothing. */
typedef struct catena_plugin {
    uint32_t struct_size;
    uint32_t n_functions;
    uint32_t n_kernels;
    uint32_t n_backends;
    uint32_t n_extensions;
    uint32_t reserved;
    /* May be NULL if the number is 0. */
    const catena_function *const *functions;
    const catena_kernel *const *kernels;
    const catena_backend *const *backends;
    const catena_extension *const *extensions;
    /* [load] Called after registration; NULL if not needed. If it fails, the plugin is removed
     * again. */
    catena_status(CATENA_CALL *init)(const catena_host *host, catena_ctx *ctx);
    /* [load] Called when the host ends, by the thread that ends it; NULL if not needed. */
    void(CATENA_CALL *deinit)(void);
} catena_plugin;

#ifdef __cplusplus
extern "C" {
#endif

/* The two exported symbols, with the major in their names. */
extern CATENA_EXPORT const catena_manifest catena_manifest_v1;

/* [load] Returns a table that stays valid, or NULL after host->fail(ctx, ...). Static
 * constructors must not do the work of this function. A process with several hosts calls it for
 * each; the services of the last one are used. */
CATENA_EXPORT const catena_plugin *CATENA_CALL catena_plugin_entry_v1(const catena_host *host,
                                                                      catena_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
