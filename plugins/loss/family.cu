// loss.cuda.catena, table of contents: what is minimised, and measured.
#include "accuracy.cuh"
#include "mean_squared_error.cuh"
#include "softmax_cross_entropy.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.loss.cuda", "0.1.0", Accuracy, LabelWeights, MeanSquaredError,
              SoftmaxCrossEntropy);
