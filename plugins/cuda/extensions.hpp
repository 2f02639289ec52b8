// The tables of the backend's extensions that have no header of their own.
#pragma once

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/compiler.h"
#include "catena/abi/ext/draft/graph.h"
#include "catena/abi/ext/draft/ipc.h"

namespace catena_cuda {

extern const catena_blas blas_table;          // cuBLAS
extern const catena_compiler compiler_table;  // NVRTC, opened when the first kernel is made
extern const catena_graph graph_table;        // work of a stream, recorded once
extern const catena_ipc ipc_table;            // memory and events that processes share

// The blocks that alloc() gave out, so that the start of a block is found from an address in it.
// Throws std::bad_alloc.
void note_block(void* data, uint64_t bytes);
void forget_block(void* data);

}  // namespace catena_cuda
