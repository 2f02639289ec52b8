// loss.cuda.catena, table of contents: what is minimised, and measured. What is missing here has no
// kernels for CUDA yet.
#include "accuracy.cuh"
#include "softmax_cross_entropy.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.loss.cuda", "0.1.0", Accuracy, SoftmaxCrossEntropy);
