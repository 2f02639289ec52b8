// loss.catena, table of contents: losses and what is measured beside them.
#include "accuracy.hpp"
#include "mean_squared_error.hpp"
#include "softmax_cross_entropy.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.loss", "0.1.0", Accuracy, LabelWeights, MeanSquaredError,
              SoftmaxCrossEntropy);
