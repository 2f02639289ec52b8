/* Two extensions for kernels from formulas that are compiled ahead of time and shipped with a
 * program, for machines that have no compiler. */
#ifndef CATENA_ABI_EXT_COMPILED_H
#define CATENA_ABI_EXT_COMPILED_H

#include "catena/abi/host.h"

/* catena.targets/1: the targets of the binaries that a catena.compiler/1 makes. The same plugin
 * provides both, for the same device. Without targets, no binary is shipped. */
#define CATENA_TARGETS_1 "catena.targets/1"

/* The table of the extension. */
typedef struct catena_targets {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] The targets whose binaries run on this device, the best first, NULL-terminated. They
     * are identifiers that may be part of a file name, as "x86-64-v3". Valid until the process
     * ends. */
    const char *const *(CATENA_CALL *runs)(void *dev);
    /* [any] The target of the binaries that compile() makes now; NULL if they are only for this
     * machine. Valid until the process ends. */
    const char *(CATENA_CALL *makes)(void *dev);
} catena_targets;

/* catena.compiled_kernels/1: it belongs to no device. The plugin that has it also has
 * catena.kernels/1. */
#define CATENA_COMPILED_KERNELS_1 "catena.compiled_kernels/1"

/* The table of the extension. */
typedef struct catena_compiled_kernels {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] Adds a folder, given by an absolute path, in which kernels are searched before they are
     * compiled; folders that were added earlier are searched first. Nothing is written to it.
     * Returns CATENA_E_INVALID if it does not exist, if its owner is neither the user nor root, or
     * if others can write to it. */
    catena_status(CATENA_CALL *use)(catena_ctx *ctx, const char *folder);
} catena_compiled_kernels;

#endif
