// connection.catena, table of contents: layers with weights.
#include "binary_hierarchical_softmax.hpp"
#include "convolution_2d.hpp"
#include "convolution_2d_grad_w.hpp"
#include "deconvolution_2d.hpp"
#include "embed_id.hpp"
#include "linear.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection", "0.1.0", BinaryHierarchicalSoftmax, Convolution2D,
              Convolution2DGradW, Deconvolution2D, EmbedId, EmbedIdGradient, Linear, TreeWays);
