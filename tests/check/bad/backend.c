/* Faults of backends. */
#define _ISOC11_SOURCE /* aligned_alloc() */
#include "../../bad_plugins/backend.h"

// good_backend fails: nothing
BACKEND(good_backend) {}

// backend_endless fails: backend/memory
// Rounds sizes up without a check: a size near 2^64 wraps to a small one, and no allocation fails.
// says: expected a refusal, got none
static catena_status CATENA_CALL rounded(catena_ctx *ctx, void *dev, catena_stream *stream,
                                         uint64_t bytes, void **data) {
    return shelf_alloc(ctx, dev, stream, (bytes + 63) / 64 * 64, data);
}
BACKEND(backend_endless) { shelf.alloc = rounded; }

// backend_half fails: backend/copy
// Copies within the device copy only half of the bytes.
// says: to the device, within it and back
static catena_status CATENA_CALL half(catena_ctx *ctx, void *dev, catena_stream *stream, void *to,
                                      const void *from, uint64_t bytes, int32_t direction) {
    if (direction == CATENA_COPY_DEVICE_TO_DEVICE) bytes = bytes / 2;
    return shelf_copy(ctx, dev, stream, to, from, bytes, direction);
}
BACKEND(backend_half) { shelf.copy = half; }

// backend_misaligned fails: backend/memory
// says: a multiple of 64
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
BACKEND(backend_misaligned) { shelf.alloc = beside, shelf.free = give_back; }

// backend_ordinal fails: backend/devices
// Opens a device that does not exist.
// says: shelf:2, where there are 2: expected a refusal, got none
static catena_status CATENA_CALL any(catena_ctx *ctx, int32_t ordinal, void **dev) {
    return shelf_open(ctx, ordinal % 2, dev);
}
BACKEND(backend_ordinal) { shelf.open = any; }

static int thing;
static catena_status CATENA_CALL make_stream(catena_ctx *ctx, void *dev, catena_stream **stream) {
    *stream = (catena_stream *)&thing;
    return CATENA_OK;
}
static void CATENA_CALL end_stream(void *dev, catena_stream *stream) {}
static catena_status CATENA_CALL sync_stream(catena_ctx *ctx, void *dev, catena_stream *stream) {
    return CATENA_OK;
}
static catena_status CATENA_CALL make_event(catena_ctx *ctx, void *dev, catena_event **event) {
    *event = (catena_event *)&thing;
    return CATENA_OK;
}
static void CATENA_CALL end_event(void *dev, catena_event *event) {}
static catena_status CATENA_CALL record(catena_ctx *ctx, void *dev, catena_event *event,
                                        catena_stream *stream) {
    return CATENA_OK;
}
static catena_status CATENA_CALL wait_for(catena_ctx *ctx, void *dev, catena_event *event,
                                          catena_stream *stream) {
    return host->fail(ctx, CATENA_E_DEVICE, "[shelf] not yet");
}
// backend_streams fails: backend/streams
// Streams that cannot wait for each other.
// says: event_wait(): status
BACKEND(backend_streams) {
    shelf.flags |= CATENA_BACKEND_ASYNC;
    shelf.stream_create = make_stream, shelf.stream_destroy = end_stream;
    shelf.stream_sync = sync_stream;
    shelf.event_create = make_event, shelf.event_destroy = end_event;
    shelf.event_record = record, shelf.event_wait = wait_for;
}

// schema_streams fails: schema/table
// says: is asynchronous and lacks one of stream_create
BACKEND(schema_streams) { shelf.flags |= CATENA_BACKEND_ASYNC; }

// schema_device_type fails: schema/table
// says: dlpack_type: expected a DLDeviceType, 1 to 18, got 999
BACKEND(schema_device_type) { shelf.dlpack_type = 999; }

static void *(*volatile allocate)(size_t) = malloc; /* the compiler would remove direct calls */
RUN(spoilt) {
    volatile char *byte = allocate(1);
    *byte = 1;
    free((void *)byte);
    if (call->struct_size != sizeof *call) return CATENA_E_INVALID;
    return forward64(ctx, call);
}
// device_kernels fails: faults/allocation skew/new-host
// Kernels for a device of the plugin's own backend: they do not check the result of malloc(), and
// they refuse a struct that is larger than the one they know.
BACKEND(device_kernels) {
    the_forward32.device = the_forward64.device = "shelf";
    the_forward64.run = spoilt;
}
