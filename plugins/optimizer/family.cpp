// optimizer.catena, table of contents: updates of parameters, and of their gradients.
#include "ada_delta_update.hpp"
#include "ada_grad_update.hpp"
#include "adam_update.hpp"
#include "clip_factor.hpp"
#include "decay_update.hpp"
#include "momentum_sgd_update.hpp"
#include "rmsprop_update.hpp"
#include "scale_update.hpp"
#include "sgd_update.hpp"
#include "sum_of_squares.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.optimizer", "0.1.0", AdaDeltaUpdate, AdaGradUpdate, AdamUpdate,
              ClipFactor, DecayUpdate, MomentumSgdUpdate, RmspropUpdate, ScaleUpdate, SgdUpdate,
              SumOfSquares);
