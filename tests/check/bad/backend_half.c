// Copies within the device copy only half of the bytes.
// expect: backend/copy
// says: to the device, within it and back
#include "backend.h"
static catena_status CATENA_CALL half(catena_ctx *ctx, void *dev, catena_stream *stream, void *to,
                                      const void *from, uint64_t bytes, int32_t direction) {
    if (direction == CATENA_COPY_DEVICE_TO_DEVICE) bytes = bytes / 2;
    return shelf_copy(ctx, dev, stream, to, from, bytes, direction);
}
SPOIL {
    make_backend();
    shelf.copy = half;
}
