// connection.cuda.catena, table of contents: layers with weights. Those that are missing here have no
// kernels for CUDA yet.
#include "binary_hierarchical_softmax.cuh"
#include "embed_id.cuh"
#include "linear.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection.cuda", "0.1.0", BinaryHierarchicalSoftmax, EmbedId,
              EmbedIdGradient, Linear, TreeWays);
