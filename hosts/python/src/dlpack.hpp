// Exchange of arrays by DLPack 1: with PyTorch, CuPy, JAX and others, on every device.
#pragma once

#include "array.hpp"

namespace catena::python {

// Shares the memory of an object with __dlpack__, or of a DLPack capsule. Data on the host that is
// not dense or not writable is copied; elsewhere it raises ValueError. Work on a GPU that was
// launched before is waited for by catena's current stream there. A tensor that requires a gradient
// is refused by its library.
Array from_dlpack(PyObject* object, std::string_view what);
// array.__dlpack__(stream=None, max_version=None, dl_device=None, copy=None).
Owned export_dlpack(const Array& array, PyObject* args, PyObject* kwargs);
Owned dlpack_device(const Array& array);
// An object of another library's type that shares the memory of an array on the host, by DLPack's
// functions for C. Nothing if the type has none, or the host cannot access the array.
Owned export_as(PyObject* type, const Array& array);

// Offers DLPack's functions for C on catena.Array.
void add_dlpack();

}  // namespace catena::python
