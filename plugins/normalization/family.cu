// normalization.cuda.catena, table of contents: values brought to a common scale.
#include "batch_normalization.cuh"
#include "fixed_batch_normalization.cuh"
#include "local_response_normalization.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.normalization.cuda", "0.1.0", BatchNormalization, ChannelWindowSum,
              FixedBatchNormalization, LocalResponseNormalization, RunningUpdate);
