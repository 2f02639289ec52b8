// array.catena, table of contents: shapes, dtypes, dropout.
#include "broadcast_to.hpp"
#include "cast.hpp"
#include "concat.hpp"
#include "dropout.hpp"
#include "get_item.hpp"
#include "identity.hpp"
#include "reshape.hpp"
#include "scalar_like.hpp"
#include "sum_to.hpp"
#include "transpose.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.array", "0.1.0", ApplyDropout, BroadcastTo, Cast, Concat, Dropout,
              GetItem, Identity, PutItem, Reshape, ScalarLike, SumTo, Transpose);
