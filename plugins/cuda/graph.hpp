// Work of a stream, recorded once and launched many times.
#pragma once

#include "catena/abi/ext/draft/graph.h"

namespace catena_cuda {

extern const catena_graph graph_table;

}  // namespace catena_cuda
