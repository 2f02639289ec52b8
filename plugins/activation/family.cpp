// activation.catena, table of contents: nonlinearities.
#include "leaky_relu.hpp"
#include "prelu.hpp"
#include "relu.hpp"
#include "sigmoid.hpp"
#include "softmax.hpp"
#include "tanh.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.activation", "0.1.0", LeakyRelu, Prelu, Relu, Sigmoid, Softmax, Tanh);
