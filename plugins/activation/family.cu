// activation.cuda.catena, table of contents: nonlinearities.
#include "prelu.cuh"
#include "relu.hpp"
#include "sigmoid.hpp"
#include "softmax.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.activation.cuda", "0.1.0", LeakyRelu, Prelu, Relu, Sigmoid, Softmax,
              Tanh);
