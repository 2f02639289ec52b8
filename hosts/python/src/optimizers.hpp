// Update rules of optimizers: state and hyperparameters belong to Python, the steps are C++.
#pragma once

#include "variable.hpp"

namespace catena::python {

void add_optimizers(PyObject* module);

}  // namespace catena::python
