// Kernels from formulas that Python gives at run time.
#pragma once

#include "array.hpp"

namespace catena::python {

void add_kernels(PyObject* module);

}  // namespace catena::python
