// The CUDA kernels are the formulas of the header.
#include "root_mean_square.hpp"

template <>
struct catena::plugin::cuda::Kernels<RootMeanSquare> : RootMeanSquare {};

CATENA_PLUGIN("org.example.root_mean_square.cuda", "1.0.0", RootMeanSquare);
