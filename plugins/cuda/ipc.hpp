// Memory and events that processes share.
#pragma once

#include "catena/abi/ext/draft/ipc.h"

namespace catena_cuda {

extern const catena_ipc ipc_table;

// The blocks that alloc() gave out, so that the start of a block is found from an address in it.
// Throws std::bad_alloc.
void note_block(void* data, uint64_t bytes);
void forget_block(void* data);

}  // namespace catena_cuda
