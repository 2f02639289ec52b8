// The plugin SDK: everything for describing functions. Handwritten kernels also include
// catena/plugin/blas.hpp, philox.hpp or reduce.hpp.
#pragma once

#include "catena/plugin/describe.hpp"
#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"
#include "catena/plugin/math.hpp"
#include "catena/plugin/registry.hpp"
#include "catena/plugin/var.hpp"
