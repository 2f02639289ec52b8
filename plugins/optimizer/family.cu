// optimizer.cuda.catena, table of contents: updates of parameters, and of their gradients.
#include "ada_updates.hpp"
#include "adam_update.hpp"
#include "clip_factor.cuh"
#include "sgd_updates.hpp"
#include "sum_of_squares.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.optimizer.cuda", "0.1.0", AdaDeltaUpdate, AdaGradUpdate, AdamUpdate,
              ClipFactor, DecayUpdate, MomentumSgdUpdate, RmspropUpdate, ScaleUpdate, SgdUpdate,
              SumOfSquares);
