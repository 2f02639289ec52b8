/* A backend without a device. With EXITS_IN it ends the process: 1 in count(), 2 in open(). */
#define MODULE_ID "org.example.dry"
#include "../../bad_plugins/module.h"

#include <stdlib.h>

#ifndef EXITS_IN
#define EXITS_IN 0
#endif

static const catena_host *services;

static catena_status CATENA_CALL count(catena_ctx *ctx, int32_t *n) {
    if (EXITS_IN == 1) exit(0);
    *n = EXITS_IN == 2 ? 1 : 7;
    if (EXITS_IN == 2) return CATENA_OK;
    return services->fail(ctx, CATENA_E_DEVICE, "the driver is not there");
}
static catena_status CATENA_CALL open(catena_ctx *ctx, int32_t ordinal, void **dev) {
    (void)ordinal, (void)dev;
    if (EXITS_IN == 2) exit(0);
    return services->fail(ctx, CATENA_E_DEVICE, "nothing to open");
}
static void CATENA_CALL close(void *dev) { (void)dev; }
static int32_t CATENA_CALL supports_isa(void *dev, const char *isa) {
    (void)dev, (void)isa;
    return 0;
}
static catena_status CATENA_CALL alloc(catena_ctx *ctx, void *dev, catena_stream *stream,
                                       uint64_t bytes, void **data) {
    (void)ctx, (void)dev, (void)stream, (void)bytes, (void)data;
    return CATENA_E_NOMEM;
}
static void CATENA_CALL release(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    (void)dev, (void)stream, (void)data, (void)bytes;
}
static catena_status CATENA_CALL copy(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                      const void *src, uint64_t bytes, int32_t direction) {
    (void)ctx, (void)dev, (void)stream, (void)dst, (void)src, (void)bytes, (void)direction;
    return CATENA_E_DEVICE;
}
static catena_status CATENA_CALL sync(catena_ctx *ctx, void *dev) {
    (void)ctx, (void)dev;
    return CATENA_OK;
}

static const catena_backend backend = {.struct_size = sizeof(catena_backend),
                                       .name = "dry",
                                       .doc = "a bed without a river",
                                       .dlpack_type = 12,
                                       .count = count,
                                       .open = open,
                                       .close = close,
                                       .supports_isa = supports_isa,
                                       .alloc = alloc,
                                       .free = release,
                                       .copy = copy,
                                       .sync = sync};
static const catena_backend *const backends[] = {&backend};
static const catena_plugin table = {
    .struct_size = sizeof(catena_plugin), .n_backends = 1, .backends = backends};

ENTRY {
    (void)ctx;
    services = host;
    return &table;
}
