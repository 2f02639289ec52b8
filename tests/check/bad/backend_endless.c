// More memory than there is: a size that grows small when it is rounded.
// expect: backend/memory
// says: expected a refusal, got none
#include "backend.h"
static catena_status CATENA_CALL rounded(catena_ctx *ctx, void *dev, catena_stream *stream,
                                         uint64_t bytes, void **data) {
    return shelf_alloc(ctx, dev, stream, (bytes + 63) / 64 * 64, data);
}
SPOIL {
    make_backend();
    shelf.alloc = rounded;
}
