// Streams that cannot wait for each other.
// expect: backend/streams
// says: event_wait(): status
#include "backend.h"
static int thing;
static catena_status CATENA_CALL make_stream(catena_ctx *ctx, void *dev, catena_stream **stream) {
    (void)ctx, (void)dev;
    *stream = (catena_stream *)&thing;
    return CATENA_OK;
}
static void CATENA_CALL end_stream(void *dev, catena_stream *stream) { (void)dev, (void)stream; }
static catena_status CATENA_CALL sync_stream(catena_ctx *ctx, void *dev, catena_stream *stream) {
    (void)ctx, (void)dev, (void)stream;
    return CATENA_OK;
}
static catena_status CATENA_CALL make_event(catena_ctx *ctx, void *dev, catena_event **event) {
    (void)ctx, (void)dev;
    *event = (catena_event *)&thing;
    return CATENA_OK;
}
static void CATENA_CALL end_event(void *dev, catena_event *event) { (void)dev, (void)event; }
static catena_status CATENA_CALL record(catena_ctx *ctx, void *dev, catena_event *event,
                                        catena_stream *stream) {
    (void)ctx, (void)dev, (void)event, (void)stream;
    return CATENA_OK;
}
static catena_status CATENA_CALL wait_for(catena_ctx *ctx, void *dev, catena_event *event,
                                          catena_stream *stream) {
    (void)dev, (void)event, (void)stream;
    return host->fail(ctx, CATENA_E_DEVICE, "[shelf] not yet");
}
SPOIL {
    make_backend();
    shelf.flags |= CATENA_BACKEND_ASYNC;
    shelf.stream_create = make_stream, shelf.stream_destroy = end_stream;
    shelf.stream_sync = sync_stream;
    shelf.event_create = make_event, shelf.event_destroy = end_event;
    shelf.event_record = record, shelf.event_wait = wait_for;
}
