// Functions of plugins as functions of Python, made from their descriptions.
#pragma once

#include "call.hpp"
#include "variable.hpp"

namespace catena::python {

void add_functions(PyObject* module);

}  // namespace catena::python
