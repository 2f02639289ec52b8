// normalization.catena, table of contents: values brought to a common scale.
#include "batch_normalization.hpp"
#include "fixed_batch_normalization.hpp"
#include "local_response_normalization.hpp"
#include "running_update.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.normalization", "0.1.0", BatchNormalization, ChannelWindowSum,
              FixedBatchNormalization, LocalResponseNormalization, RunningUpdate);
