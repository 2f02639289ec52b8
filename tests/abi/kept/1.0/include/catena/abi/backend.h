/* A backend: a family of devices and their memory. The CPU is one too. */
#ifndef CATENA_ABI_BACKEND_H
#define CATENA_ABI_BACKEND_H

#include "catena/abi/kernel.h"

enum {
    CATENA_BACKEND_HOST_MEMORY = 1u, /* the host can access device memory directly */
    CATENA_BACKEND_ASYNC = 2u        /* work is queued on streams; else calls return when done */
};

enum {
    CATENA_COPY_HOST_TO_DEVICE = 0,
    CATENA_COPY_DEVICE_TO_HOST = 1,
    CATENA_COPY_DEVICE_TO_DEVICE = 2 /* within one device */
};

/* dev is the result of open() for an ordinal; the backend owns it until close(). All functions
 * are [compute], except count, open and close, which are [any]; the host opens an ordinal once.
 * On a synchronous backend, stream arguments are NULL, and the pointers of streams and events
 * may be NULL. memory may be NULL. Failures are CATENA_E_NOMEM or CATENA_E_DEVICE, with a
 * message by fail(). */
typedef struct catena_backend {
    uint32_t struct_size;
    uint32_t flags;   /* CATENA_BACKEND_* */
    const char *name; /* "cpu": the part before the colon in a device's name */
    const char *doc;
    int32_t dlpack_type; /* DLPack's DLDeviceType */
    uint32_t reserved;

    /* The number of devices, possibly 0. On failure the host assumes 0. */
    catena_status(CATENA_CALL *count)(catena_ctx *ctx, int32_t *n);
    /* Creates dev, an argument of the other functions. */
    catena_status(CATENA_CALL *open)(catena_ctx *ctx, int32_t ordinal, void **dev);
    void(CATENA_CALL *close)(void *dev);                            /* the last call with dev */
    int32_t(CATENA_CALL *supports_isa)(void *dev, const char *isa); /* [any] 1 or 0 */

    /* Uninitialized memory aligned to at least 64 bytes. The host owns it until free(), which
     * receives the same number of bytes. Both are ordered on stream. The host caches blocks and
     * rarely frees them. */
    catena_status(CATENA_CALL *alloc)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                      uint64_t bytes, void **data);
    void(CATENA_CALL *free)(void *dev, catena_stream *stream, void *data, uint64_t bytes);
    /* src and dst do not overlap. HOST_TO_DEVICE has read src when it returns. DEVICE_TO_HOST is
     * complete when it returns on a synchronous backend, otherwise after sync. */
    catena_status(CATENA_CALL *copy)(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                     const void *src, uint64_t bytes, int32_t direction);
    /* The free and the total memory of the device, in bytes. */
    catena_status(CATENA_CALL *memory)(catena_ctx *ctx, void *dev, uint64_t *free_bytes,
                                       uint64_t *total_bytes);

    /* Streams and events belong to the host from create to destroy. event_wait makes the stream
     * wait, not the caller; stream_sync blocks the caller. */
    catena_status(CATENA_CALL *stream_create)(catena_ctx *ctx, void *dev, catena_stream **stream);
    void(CATENA_CALL *stream_destroy)(void *dev, catena_stream *stream);
    catena_status(CATENA_CALL *stream_sync)(catena_ctx *ctx, void *dev, catena_stream *stream);
    catena_status(CATENA_CALL *event_create)(catena_ctx *ctx, void *dev, catena_event **event);
    void(CATENA_CALL *event_destroy)(void *dev, catena_event *event);
    catena_status(CATENA_CALL *event_record)(catena_ctx *ctx, void *dev, catena_event *event,
                                             catena_stream *stream);
    catena_status(CATENA_CALL *event_wait)(catena_ctx *ctx, void *dev, catena_event *event,
                                           catena_stream *stream);
    catena_status(CATENA_CALL *sync)(catena_ctx *ctx, void *dev); /* all streams */

    /* [any] A further extension of the backend by id, or NULL. The core asks for
     * "catena.threads/1". */
    const void *(CATENA_CALL *get_extension)(void *dev, const char *id);
} catena_backend;

#endif
