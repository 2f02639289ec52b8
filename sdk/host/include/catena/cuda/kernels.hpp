// cuda: kernels that a program writes down as formulas. They are the host SDK's, and run on every device
// that has a compiler: on a GPU where their arrays are there.
#pragma once

#include <catena/elementwise.hpp>
#include <catena/reduction.hpp>

namespace catena::cuda {

using catena::elementwise;
using catena::reduce;
using catena::reduction;

}  // namespace catena::cuda
