/* Kernels from formulas that are compiled ahead of time, on one machine, and shipped with a program
 * to others that have no compiler. Two drafts of extensions. */
#ifndef CATENA_ABI_EXT_DRAFT_COMPILED_H
#define CATENA_ABI_EXT_DRAFT_COMPILED_H

#include "catena/abi/host.h"

/* catena.targets.draft/1: beside a catena.compiler.draft/1 and for the same device, from the same
 * plugin. Without it, or on a device for which it names no target, no binary is shipped. */
#define CATENA_TARGETS_DRAFT_1 "catena.targets.draft/1"

/* The table of the extension. */
typedef struct catena_targets {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] The targets whose binaries run on this device, the best first, NULL-terminated:
     * identifiers that may be part of a file's name, "x86-64-v3". Lives until the process ends. */
    const char *const *(CATENA_CALL *runs)(void *dev);
    /* [any] The target of the binaries that compile() makes now; NULL if they are for this machine
     * alone. Lives until the process ends. */
    const char *(CATENA_CALL *makes)(void *dev);
} catena_targets;

/* catena.compiled_kernels.draft/1: of no device; beside catena.kernels.draft/1 and from the same
 * plugin. */
#define CATENA_COMPILED_KERNELS_DRAFT_1 "catena.compiled_kernels.draft/1"

/* The table of the extension. */
typedef struct catena_compiled_kernels {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] From now on kernels are looked for in this folder, an absolute path, before they are
     * compiled; in folders that were named earlier first. Nothing is written to it.
     * CATENA_E_INVALID if it is not there, if its owner is neither the user nor root, or if others
     * can write to it. */
    catena_status(CATENA_CALL *use)(catena_ctx *ctx, const char *folder);
} catena_compiled_kernels;

#endif
