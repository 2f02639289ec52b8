// The C++ part of catena.torch: graphs behind the tensors of PyTorch.
#pragma once

#include "python.hpp"

namespace catena::python {

void add_torch(PyObject* module);

}  // namespace catena::python
