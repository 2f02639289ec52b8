// catena._core.forms: functions with Chainer's arguments that no single function of a plugin takes.
#pragma once

#include "python.hpp"

namespace catena::python {

void add_forms(PyObject* module);

}  // namespace catena::python
