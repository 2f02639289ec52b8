// Plans by what they were made for: chosen once, by cuDNN's heuristics or by timing, and kept.
#pragma once

#include "graph.hpp"

namespace catena_cudnn {

// Whether cuDNN can do this within the workspace that is allowed.
bool can(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Scratch bytes that run() takes; 0 if it cannot.
std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Enqueues it. data: x, W, y and b as p has them. With CATENA_CUDNN_AUTOTUNE the first run measures.
void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data);

}  // namespace catena_cudnn
