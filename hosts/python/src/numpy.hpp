// NumPy's arrays through its C interface. The parts used here have the same layout and positions in
// NumPy 1 and 2, so the module needs none of NumPy's headers and works with all versions.
#pragma once

#include "array.hpp"

#include <optional>

namespace catena::python {

// Imports NumPy. Called when the module is imported: later, an import could wait for another thread.
void open_numpy();
// numpy.NAME(argument)
Owned numpy(const char* name, PyObject* argument);

bool is_numpy_array(PyObject* object);
bool is_numpy_scalar(PyObject* object);  // a numpy.float32, ...; no 0-d array
// NumPy's kind of a number, 'f', 'i', 'u' or 'b', if the object is a scalar or 0-d array; else 0.
char numpy_number(PyObject* object);

// The kind of an object's dtype if it is one of those, else 0.
char numpy_kind(PyObject* object);

// A numpy.ndarray with the array's memory, which the host can access; of uint16 for bfloat16.
Owned numpy_view(const Array& array);

// The array of an object with __array_struct__.
struct NumpyMemory {
    void* data;
    Shape shape;
    std::optional<Dtype> dtype;  // nothing for a dtype that catena does not have
    bool can_share;              // dense, aligned, in native byte order and writable
    bool is_ndarray;             // and no object of a subclass
};
// Nothing for objects without __array_struct__. Raises ValueError for more than 16 axes.
std::optional<NumpyMemory> numpy_memory(PyObject* object);

// The attribute, or nothing if there is none.
Owned attribute(PyObject* object, const char* name);

}  // namespace catena::python
