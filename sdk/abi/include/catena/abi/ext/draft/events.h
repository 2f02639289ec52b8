/* catena.events.draft/1: a backend extension; asking streams and events how far they are. */
#ifndef CATENA_ABI_EXT_DRAFT_EVENTS_H
#define CATENA_ABI_EXT_DRAFT_EVENTS_H

#include "catena/abi/backend.h"

#define CATENA_EVENTS_DRAFT_1 "catena.events.draft/1" /* its id */

/* The table of the extension; all are [compute]. */
typedef struct catena_events {
    uint32_t struct_size;
    uint32_t reserved;
    /* *done = 1 if all work before it is done, else 0; does not wait. */
    catena_status(CATENA_CALL *stream_query)(catena_ctx *ctx, void *dev, catena_stream *stream,
                                             int32_t *done);
    catena_status(CATENA_CALL *event_query)(catena_ctx *ctx, void *dev, catena_event *event,
                                            int32_t *done);
    /* Makes the caller wait for the last record. */
    catena_status(CATENA_CALL *event_sync)(catena_ctx *ctx, void *dev, catena_event *event);
    /* Milliseconds of the device's clock between two events of timed_event_create() that are done.
     * */
    catena_status(CATENA_CALL *elapsed)(catena_ctx *ctx, void *dev, catena_event *begin,
                                        catena_event *end, double *milliseconds);
    /* As event_create() of the backend, whose events are for order and may know no time. NULL:
     * those know it as well. */
    catena_status(CATENA_CALL *timed_event_create)(catena_ctx *ctx, void *dev,
                                                   catena_event **event);
} catena_events;

#endif
