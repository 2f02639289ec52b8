/* catena.many.draft/1: an extension between plugins and hosts; many calls of one kernel in few
 * launches, as a step of an optimizer has one for each parameter. */
#ifndef CATENA_ABI_EXT_DRAFT_MANY_H
#define CATENA_ABI_EXT_DRAFT_MANY_H

#include "catena/abi/kernel.h"

#define CATENA_MANY_DRAFT_1 "catena.many.draft/1" /* its id */

/* The table of the extension, for kernels of its own plugin. */
typedef struct catena_many {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] 1 if run() takes calls of this kernel; the others are for such kernels alone. */
    int32_t(CATENA_CALL *has)(const catena_kernel *kernel);
    /* [compute] What kernel->run() would do for each of n calls. They have the same function,
     * attributes, flags, device and stream; nothing that one writes is seen by another; none has
     * scratch or saves. attributes: memory of the device, with what attributes() wrote, in place of
     * those of the calls; so each launch of a graph can have others. NULL: those of the calls. */
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_kernel *kernel,
                                    const catena_call *const *calls, uint32_t n,
                                    const void *attributes);
    /* [any] The bytes of attributes(). */
    uint64_t(CATENA_CALL *attribute_bytes)(const catena_kernel *kernel);
    /* [any] Attributes, dense as in a call, as the kernel reads them from memory. `to` is the
     * host's. */
    catena_status(CATENA_CALL *attributes)(catena_ctx *ctx, const catena_kernel *kernel,
                                           const catena_value *attrs, void *to);
} catena_many;

#endif
