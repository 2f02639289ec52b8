// The plugin SDK: everything that describing functions needs. Kernels written by hand add
// catena/plugin/blas.hpp, philox.hpp or reduce.hpp.
#pragma once

#include "catena/plugin/describe.hpp"
#include "catena/plugin/elementwise.hpp"
#include "catena/plugin/kernel.hpp"
#include "catena/plugin/math.hpp"
#include "catena/plugin/registry.hpp"
#include "catena/plugin/var.hpp"
