/* A backend without devices. A module includes it after module.h and uses BACKEND_PLUGIN(). */
#ifndef BACKEND_H
#define BACKEND_H

static catena_status CATENA_CALL count(catena_ctx *ctx, int32_t *n) {
    (void)ctx;
    *n = 0;
    return CATENA_OK;
}
static catena_status CATENA_CALL open_device(catena_ctx *ctx, int32_t ordinal, void **dev) {
    (void)ctx, (void)ordinal, (void)dev;
    return CATENA_E_DEVICE;
}
static void CATENA_CALL close_device(void *dev) { (void)dev; }
static int32_t CATENA_CALL supports_isa(void *dev, const char *isa) {
    (void)dev, (void)isa;
    return 0;
}
static catena_status CATENA_CALL alloc(catena_ctx *ctx, void *dev, catena_stream *stream,
                                       uint64_t bytes, void **data) {
    (void)ctx, (void)dev, (void)stream, (void)bytes, (void)data;
    return CATENA_E_NOMEM;
}
static void CATENA_CALL free_memory(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    (void)dev, (void)stream, (void)data, (void)bytes;
}
static catena_status CATENA_CALL copy(catena_ctx *ctx, void *dev, catena_stream *stream, void *dst,
                                      const void *src, uint64_t bytes, int32_t direction) {
    (void)ctx, (void)dev, (void)stream, (void)dst, (void)src, (void)bytes, (void)direction;
    return CATENA_OK;
}
static catena_status CATENA_CALL sync_device(catena_ctx *ctx, void *dev) {
    (void)ctx, (void)dev;
    return CATENA_OK;
}

static catena_backend backend = {.struct_size = sizeof(catena_backend),
                                 .name = "abacus",
                                 .doc = "beads",
                                 .dlpack_type = 12,
                                 .count = count,
                                 .open = open_device,
                                 .close = close_device,
                                 .supports_isa = supports_isa,
                                 .alloc = alloc,
                                 .free = free_memory,
                                 .copy = copy,
                                 .sync = sync_device};

/* An entry that executes the statement SPOIL, which makes the backend invalid. */
#define BACKEND_PLUGIN(SPOIL)                                                              \
    ENTRY {                                                                                \
        static const catena_backend *const backends[] = {&backend};                        \
        static const catena_plugin table = {                                               \
            sizeof(catena_plugin), 0, 0, 1, 0, 0, NULL, NULL, backends, NULL, NULL, NULL}; \
        (void)host, (void)ctx, (void)inputs, (void)outputs;                                \
        SPOIL;                                                                             \
        return &table;                                                                     \
    }

#endif
