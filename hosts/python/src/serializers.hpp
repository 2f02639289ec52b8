// Files of arrays with names.
#pragma once

#include "array.hpp"

namespace catena::python {

void add_serializers(PyObject* module);

}  // namespace catena::python
