// connection.cuda.catena, table of contents: layers with weights.
#include "binary_hierarchical_softmax.cuh"
#include "convolution_2d.cuh"
#include "convolution_2d_grad_w.cuh"
#include "deconvolution_2d.cuh"
#include "embed_id.cuh"
#include "linear.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection.cuda", "0.1.0", BinaryHierarchicalSoftmax, Convolution2D,
              Convolution2DGradW, Deconvolution2D, EmbedId, EmbedIdGradient, Linear, TreeWays);
