// Arrays in Python: catena.Array, and the exchange with NumPy and DLPack without copying.
#pragma once

#include "python.hpp"

#include <catena/catena.hpp>

namespace catena::python {

extern PyTypeObject* array_type;

inline bool is_array(PyObject* object) { return PyObject_TypeCheck(object, array_type) != 0; }
Owned wrap(Array array);

// Whether array_of() takes the object: a catena.Array, or one with __array_struct__ or __dlpack__.
bool is_array_like(PyObject* object);
// The elements of an array of any library. Shares the memory of an array that is dense, aligned, in
// native byte order and writable; others are copied. Raises TypeError for other objects and dtypes.
// what: "[catena.Variable] data". same: set to whether to_python() could return this object.
Array array_of(PyObject* object, std::string_view what, bool* same = nullptr);
// The array as an operand of a variable: in its dtype if both are floating, unless `keep`.
Array operand_of(PyObject* object, Dtype dtype, bool keep = false);
// A numpy.ndarray that shares the memory if the host can access it, else a catena.Array, also for
// bfloat16 without the package ml_dtypes. None for an empty handle.
Owned to_python(const Array& array);

Owned python_shape(const Shape& shape);
// An integer or a sequence of integers.
Shape shape_of(PyObject* object, std::string_view what);
std::vector<std::int64_t> integers_of(PyObject* object, std::string_view what);
std::vector<Array> arrays_of(PyObject* object, std::string_view what);  // None: an empty one
std::int64_t integer_of(PyObject* object);              // of an object with __index__
int narrow(std::int64_t value, std::string_view what);  // raises OverflowError if it is too large
// The elements of a list, a generator, ... as a tuple. Raises TypeError for what has none.
Owned elements_in(PyObject* object, std::string_view what, const char* expected);
Owned python_dtype(Dtype dtype);
Dtype dtype_from(PyObject* object, std::string_view what);
Owned python_device(Device device);
Device device_from(PyObject* object);
// A number, also a scalar or a 0-d array of NumPy.
bool is_number(PyObject* object);
Scalar scalar_of(PyObject* object);
// A number as a 0-d array, and an array of one number. They throw ValueError for integers beyond
// the dtype's range.
Array number_array(Scalar number, Dtype dtype, Device device);
Array array_of_number(const Shape& shape, Scalar number, Dtype dtype, Device device);

void add_array(PyObject* module);

}  // namespace catena::python
