// optimizer.catena, table of contents: updates of parameters.
#include "adam_update.hpp"
#include "sgd_update.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.optimizer", "0.1.0", AdamUpdate, SgdUpdate);
