// Opens a device that does not exist.
// expect: backend/devices
// says: shelf:2, where there are 2: expected a refusal, got none
#include "backend.h"
static catena_status CATENA_CALL any(catena_ctx *ctx, int32_t ordinal, void **dev) {
    return shelf_open(ctx, ordinal % 2, dev);
}
SPOIL {
    make_backend();
    shelf.open = any;
}
