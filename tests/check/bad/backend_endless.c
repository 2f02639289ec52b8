// Rounds sizes up without a check: a size near 2^64 wraps to a small one, and no allocation fails.
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
