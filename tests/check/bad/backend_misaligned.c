// expect: backend/memory
// says: a multiple of 64
#include "backend.h"
static catena_status CATENA_CALL beside(catena_ctx *ctx, void *dev, catena_stream *stream,
                                        uint64_t bytes, void **data) {
    if (bytes > PTRDIFF_MAX - 128) return shelf_alloc(ctx, dev, stream, bytes, data);
    const catena_status status = shelf_alloc(ctx, dev, stream, bytes + 16, data);
    if (status == CATENA_OK) *data = (char *)*data + 16;
    return status;
}
static void CATENA_CALL give_back(void *dev, catena_stream *stream, void *data, uint64_t bytes) {
    shelf_free(dev, stream, (char *)data - 16, bytes);
}
SPOIL {
    make_backend();
    shelf.alloc = beside;
    shelf.free = give_back;
}
