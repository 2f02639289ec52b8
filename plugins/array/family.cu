// array.cuda.catena, table of contents: shapes, dtypes, dropout. Views have no kernels.
#include "broadcast_to.cuh"
#include "cast.cuh"
#include "dropout.cuh"
#include "scalar_like.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.array.cuda", "0.1.0", ApplyDropout, BroadcastTo, Cast, Dropout,
              ScalarLike, SumTo);
