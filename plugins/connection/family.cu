// connection.cuda.catena, table of contents: layers with weights.
#include "binary_hierarchical_softmax.cuh"
#include "convolution.cuh"
#include "embed_id.cuh"
#include "linear.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection.cuda", "0.1.0", BinaryHierarchicalSoftmax, Convolution2D,
              Convolution2DGradW, Deconvolution2D, EmbedId, EmbedIdGradient, Linear, TreeWays);
