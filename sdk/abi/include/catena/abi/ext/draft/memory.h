/* catena.memory.draft/1: a backend extension; what memory can do beyond the backend's own table. */
#ifndef CATENA_ABI_EXT_DRAFT_MEMORY_H
#define CATENA_ABI_EXT_DRAFT_MEMORY_H

#include "catena/abi/backend.h"

#define CATENA_MEMORY_DRAFT_1 "catena.memory.draft/1" /* its id */

/* The table of the extension. Any pointer may be NULL: the host then does without. dev is what
 * open() returned. All are [compute]; failures are CATENA_E_NOMEM or CATENA_E_DEVICE, with text by
 * fail(). */
typedef struct catena_memory {
    uint32_t struct_size;
    uint32_t reserved;
    /* Host memory that the device reads and writes by itself (pinned), so that copies run beside
     * the host. Aligned to 64 bytes, uninitialised; the host's until host_free(). The caller sees
     * to it that no work uses it any more. */
    catena_status(CATENA_CALL *host_alloc)(catena_ctx *ctx, void *dev, uint64_t bytes, void **data);
    void(CATENA_CALL *host_free)(void *dev, void *data, uint64_t bytes);
    /* Copies as catena_backend.copy(), but returns at once: the pinned memory at either end is left
     * alone until stream is done. */
    catena_status(CATENA_CALL *copy_async)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                           void *dst, const void *src, uint64_t bytes,
                                           int32_t direction);
    /* n elements of 1, 2, 4, 8 or 16 bytes, each as the one at value, which is read before the
     * return; dst is aligned to the element. */
    catena_status(CATENA_CALL *fill)(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                     const void *value, uint32_t value_bytes, uint64_t n);
    /* From memory of another device of this backend. stream is of dev, the one that gets the data;
     * the caller has made it wait for what writes src. */
    catena_status(CATENA_CALL *copy_peer)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                          void *dst, void *src_dev, const void *src,
                                          uint64_t bytes);
    /* n elements of another dtype, as C converts them; to halves they are rounded once, to nearest
     * even, and true is what is not 0. CATENA_E_UNSUPPORTED for dtypes that it does not know. */
    catena_status(CATENA_CALL *convert)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                        void *dst, catena_dtype dst_dtype, const void *src,
                                        catena_dtype src_dtype, uint64_t n);
} catena_memory;

#endif
