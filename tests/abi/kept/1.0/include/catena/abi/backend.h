/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_BACKEND_H
#define CATENA_ABI_BACKEND_H
#include "catena/abi/kernel.h"
enum {
    CATENA_BACKEND_HOST_MEMORY = 1u,
    CATENA_BACKEND_ASYNC = 2u
};
enum {
    CATENA_COPY_HOST_TO_DEVICE = 0,
    CATENA_COPY_DEVICE_TO_HOST = 1,
    CATENA_COPY_DEVICE_TO_DEVICE = 2
};
typedef struct catena_backend {
    uint32_t struct_size;
    uint32_t flags;
    const char *name;
    const char *doc;
    int32_t dlpack_type;
    uint32_t reserved;
    catena_status(CATENA_CALL *count)(catena_ctx *ctx, int32_t *n);
    catena_status(CATENA_CALL *open)(catena_ctx *ctx, int32_t ordinal, void **dev);
    void(CATENA_CALL *close)(void *dev);
    int32_t(CATENA_CALL *supports_isa)(void *dev, const char *isa);
    catena_status(CATENA_CALL *alloc)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                      uint64_t bytes, void **data);
    void(CATENA_CALL *free)(void *dev, catena_stream *stream, void *data, uint64_t bytes);
    catena_status(CATENA_CALL *copy)(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                     const void *src, uint64_t bytes, int32_t direction);
    catena_status(CATENA_CALL *memory)(catena_ctx *ctx, void *dev, uint64_t *free_bytes,
                                       uint64_t *total_bytes);
    catena_status(CATENA_CALL *stream_create)(catena_ctx *ctx, void *dev, catena_stream **stream);
    void(CATENA_CALL *stream_destroy)(void *dev, catena_stream *stream);
    catena_status(CATENA_CALL *stream_sync)(catena_ctx *ctx, void *dev, catena_stream *stream);
    catena_status(CATENA_CALL *event_create)(catena_ctx *ctx, void *dev, catena_event **event);
    void(CATENA_CALL *event_destroy)(void *dev, catena_event *event);
    catena_status(CATENA_CALL *event_record)(catena_ctx *ctx, void *dev, catena_event *event,
                                             catena_stream *stream);
    catena_status(CATENA_CALL *event_wait)(catena_ctx *ctx, void *dev, catena_event *event,
                                           catena_stream *stream);
    catena_status(CATENA_CALL *sync)(catena_ctx *ctx, void *dev);
    const void *(CATENA_CALL *get_extension)(void *dev, const char *id);
} catena_backend;
#endif
