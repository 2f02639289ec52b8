/* Adds a backend to the plugin of module.h: two devices, "shelf:0" and "shelf:1", in host memory. */
#ifndef BACKEND_H
#define BACKEND_H

#include <stdlib.h>
#include <string.h>

#ifndef DEVICES
#define DEVICES "cpu,shelf"
#endif
#include "module.h"

static catena_status CATENA_CALL shelf_count(catena_ctx *ctx, int32_t *n) {
    *n = 2;
    return CATENA_OK;
}
static catena_status CATENA_CALL shelf_open(catena_ctx *ctx, int32_t ordinal, void **dev) {
    static int devices[2];
    if (ordinal < 0 || ordinal > 1)
        return host->fail(ctx, CATENA_E_DEVICE, "[shelf] ordinal: expected 0 or 1, got another");
    *dev = &devices[ordinal];
    return CATENA_OK;
}
static void CATENA_CALL shelf_close(void *dev) {}
static int32_t CATENA_CALL shelf_isa(void *dev, const char *isa) { return 0; }
static catena_status CATENA_CALL shelf_alloc(catena_ctx *ctx, void *dev, catena_stream *stream,
                                             uint64_t bytes, void **data) {
    *data = bytes > PTRDIFF_MAX - 64 ? NULL : aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (*data == NULL) return host->fail(ctx, CATENA_E_NOMEM, "[shelf] out of memory");
    return CATENA_OK;
}
static void CATENA_CALL shelf_free(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    free(data);
}
static catena_status CATENA_CALL shelf_copy(catena_ctx *ctx, void *dev, catena_stream *stream,
                                            void *to, const void *from, uint64_t bytes,
                                            int32_t direction) {
    memcpy(to, from, bytes);
    return CATENA_OK;
}
static catena_status CATENA_CALL shelf_sync(catena_ctx *ctx, void *dev) { return CATENA_OK; }

static catena_backend shelf = {.struct_size = sizeof(catena_backend),
                               .flags = CATENA_BACKEND_HOST_MEMORY,
                               .name = "shelf",
                               .doc = "host memory under another name",
                               .dlpack_type = 12,
                               .count = shelf_count,
                               .open = shelf_open,
                               .close = shelf_close,
                               .supports_isa = shelf_isa,
                               .alloc = shelf_alloc,
                               .free = shelf_free,
                               .copy = shelf_copy,
                               .sync = shelf_sync};

/* A row that runs statements, which may change the backend. */
#define BACKEND(name)                                        \
    static void backend_##name(void);                        \
    SPOIL(name) {                                            \
        static const catena_backend *const all[] = {&shelf}; \
        the_plugin.n_backends = 1;                           \
        the_plugin.backends = all;                           \
        backend_##name();                                    \
    }                                                        \
    static void backend_##name(void)

#endif
