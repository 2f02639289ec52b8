// Memory of the CPU devices: blocks, copies, and how much there is.
#pragma once

#include "catena/abi.h"

namespace catena_cpu {

// As in catena_backend; the stream is NULL.
catena_status CATENA_CALL alloc(catena_ctx* ctx, void* dev, catena_stream* stream, uint64_t bytes,
                                void** data);
void CATENA_CALL release(void* dev, catena_stream* stream, void* data, uint64_t bytes);
catena_status CATENA_CALL copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                               const void* src, uint64_t bytes, int32_t direction);
catena_status CATENA_CALL memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes,
                                 uint64_t* total_bytes);

}  // namespace catena_cpu
