// Streams and events. A catena_stream is a cudaStream_t, a catena_event a cudaEvent_t.
#pragma once

#include <cuda_runtime.h>

#include "catena/abi/ext/draft/events.h"

namespace catena_cuda {

// As in catena_backend.
catena_status CATENA_CALL stream_create(catena_ctx* ctx, void* dev, catena_stream** stream);
void CATENA_CALL stream_destroy(void* dev, catena_stream* stream);
catena_status CATENA_CALL stream_sync(catena_ctx* ctx, void* dev, catena_stream* stream);
catena_status CATENA_CALL event_create(catena_ctx* ctx, void* dev, catena_event** event);
void CATENA_CALL event_destroy(void* dev, catena_event* event);
catena_status CATENA_CALL event_record(catena_ctx* ctx, void* dev, catena_event* event,
                                       catena_stream* stream);
catena_status CATENA_CALL event_wait(catena_ctx* ctx, void* dev, catena_event* event,
                                     catena_stream* stream);
catena_status CATENA_CALL sync(catena_ctx* ctx, void* dev);

// The device of a stream, also while the stream is recorded.
cudaError_t owner_of(cudaStream_t stream, int* ordinal);

// With CUDA's flags.
catena_status make_event(catena_ctx* ctx, void* dev, unsigned flags, catena_event** event);

extern const catena_events events_table;

}  // namespace catena_cuda
