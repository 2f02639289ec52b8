// Memory of the devices: blocks, copies and fills.
#pragma once

#include <cuda_runtime.h>

#include "catena/abi/ext/draft/memory.h"

namespace catena_cuda {

// As in catena_backend.
catena_status CATENA_CALL alloc(catena_ctx* ctx, void* dev, catena_stream* stream, uint64_t bytes,
                                void** data);
void CATENA_CALL release(void* dev, catena_stream* stream, void* data, uint64_t bytes);
catena_status CATENA_CALL copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                               const void* src, uint64_t bytes, int32_t direction);
catena_status CATENA_CALL memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes,
                                 uint64_t* total_bytes);

extern const catena_memory memory_table;

// n elements of value_bytes each, by a kernel on the current device with so many multiprocessors.
cudaError_t launch_fill(cudaStream_t stream, int processors, void* dst, const void* value,
                        uint32_t value_bytes, uint64_t n);

// In catena_memory.
catena_status CATENA_CALL convert(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                                  catena_dtype dst_dtype, const void* src, catena_dtype src_dtype,
                                  uint64_t n);

}  // namespace catena_cuda
