// Exchange of arrays by DLPack 1: with PyTorch, CuPy, JAX and others, on every device.
#pragma once

#include "array.hpp"

namespace catena::python {

// Shares the memory of an object with __dlpack__. Data on the host that is not dense or not
// writable is copied; elsewhere it raises ValueError.
Array from_dlpack(PyObject* object, std::string_view what);
// array.__dlpack__(stream=None, max_version=None, dl_device=None, copy=None).
Owned export_dlpack(const Array& array, PyObject* args, PyObject* kwargs);
Owned dlpack_device(const Array& array);

}  // namespace catena::python
