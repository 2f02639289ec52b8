// array.cuda.catena, table of contents: shapes, dtypes, dropout. Views have no kernels.
#include "broadcast_to.cuh"
#include "cast.cuh"
#include "concat.cuh"
#include "dropout.cuh"
#include "get_item.cuh"
#include "scalar_like.cuh"
#include "transpose.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.array.cuda", "0.1.0", ApplyDropout, BroadcastTo, Cast, Concat, Dropout,
              GetItem, PutItem, ScalarLike, SumTo, Transpose);
