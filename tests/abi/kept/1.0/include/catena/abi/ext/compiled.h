/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_COMPILED_H
#define CATENA_ABI_EXT_COMPILED_H
#include "catena/abi/host.h"
#define CATENA_TARGETS_1 "catena.targets/1"
typedef struct catena_targets {
    uint32_t struct_size;
    uint32_t reserved;
    const char *const *(CATENA_CALL *runs)(void *dev);
    const char *(CATENA_CALL *makes)(void *dev);
} catena_targets;
#define CATENA_COMPILED_KERNELS_1 "catena.compiled_kernels/1"
typedef struct catena_compiled_kernels {
    uint32_t struct_size;
    uint32_t reserved;
    catena_status(CATENA_CALL *use)(catena_ctx *ctx, const char *folder);
} catena_compiled_kernels;
#endif
