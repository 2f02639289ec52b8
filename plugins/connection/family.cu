// connection.cuda.catena, table of contents: layers with weights. Those that are missing here have no
// kernels for CUDA yet.
#include "convolution_2d.cuh"
#include "convolution_2d_grad_w.cuh"
#include "deconvolution_2d.cuh"
#include "linear.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.connection.cuda", "0.1.0", Convolution2D, Convolution2DGradW,
              Deconvolution2D, Linear);
