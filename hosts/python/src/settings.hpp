// Devices, plugins, the configuration of the thread and random numbers in Python.
#pragma once

#include "dlpack.hpp"

namespace catena::python {

void add_settings(PyObject* module);
void add_data(PyObject* module);
void add_gradient_check(PyObject* module);

}  // namespace catena::python
