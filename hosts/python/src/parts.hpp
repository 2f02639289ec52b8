// The parts of catena._core that module.cpp adds; each has a source of its own.
#pragma once

#include "python.hpp"

namespace catena::python {

void add_data(PyObject* module);
void add_forms(PyObject* module);
void add_plugin_functions(PyObject* module);
void add_gradient_check(PyObject* module);
void add_kernels(PyObject* module);
void add_optimizers(PyObject* module);
void add_serializers(PyObject* module);
void add_settings(PyObject* module);
void add_torch(PyObject* module);

}  // namespace catena::python
