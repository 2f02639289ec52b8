// cuda: kernels that a program writes as formulas. They are part of the host SDK and run on the
// device of their arrays, GPU or not.
#pragma once

#include <catena/elementwise.hpp>
#include <catena/reduction.hpp>

namespace catena::cuda {

using catena::elementwise;
using catena::reduce;
using catena::reduction;

}  // namespace catena::cuda
