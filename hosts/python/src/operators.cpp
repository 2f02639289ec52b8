#include "operators.hpp"

#include <cstring>

namespace catena::python {

Device host_device() { return cuda::host(); }

Owned item(const Array& array) {
    if (!array) raise(PyExc_ValueError, "expected an array, got None");
    switch (array.dtype()) {
        case Dtype::bool8: return checked(PyBool_FromLong(array.item<bool>()));
        case Dtype::int32:
        case Dtype::int64:
        case Dtype::uint8: return checked(PyLong_FromLongLong(array.item<std::int64_t>()));
        default: return checked(PyFloat_FromDouble(array.item<double>()));
    }
}

namespace {

std::optional<std::int64_t> bound(PyObject* slice, const char* name) {
    const Owned value = checked(PyObject_GetAttrString(slice, name));
    if (value.get() == Py_None) return {};
    const Owned number = checked(PyNumber_Index(value.get()));
    const long long result = PyLong_AsLongLong(number.get());
    if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    return result;
}

Index index_of(PyObject* key) {
    if (key == Py_None) return newaxis;
    if (key == Py_Ellipsis) return ellipsis;
    if (PyObject_TypeCheck(key, &PySlice_Type) != 0)
        return slice(bound(key, "start"), bound(key, "stop"), bound(key, "step").value_or(1));
    if (is_variable(key)) return as<PyVariable>(key)->variable;
    if (PyLong_CheckExact(key) != 0 || (PyIndex_Check(key) != 0 && PyBool_Check(key) == 0 &&
                                        PyObject_HasAttrString(key, "ndim") == 0)) {
        const Owned number = checked(PyNumber_Index(key));
        const long long result = PyLong_AsLongLong(number.get());
        if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return static_cast<std::int64_t>(result);
    }
    if (is_array(key)) return as<PyArray>(key)->array;
    const Owned numpy = checked(PyImport_ImportModule("numpy"));
    Owned array = checked(PyObject_CallMethod(numpy.get(), "asarray", "O", key));
    const Owned dtype = checked(PyObject_GetAttrString(array.get(), "dtype"));
    const Owned kind = checked(PyObject_GetAttrString(dtype.get(), "kind"));
    const Owned size = checked(PyObject_GetAttrString(array.get(), "size"));
    const std::string_view letter = text_of(kind.get());
    const bool empty_list = letter == "f" && PyLong_AsLong(size.get()) == 0;
    if (letter != "b" && letter != "i" && letter != "u" && !empty_list)
        raise(
            PyExc_IndexError,
            "expected integers, slices, None, ... or arrays of integers or bool as indices, got " +
                type_name(key));
    if (letter != "b") array = checked(PyObject_CallMethod(array.get(), "astype", "s", "int64"));
    return array_of(array.get(), "[get_item] index");
}

}  // namespace

std::vector<Index> indices_of(PyObject* key) {
    std::vector<Index> indices;
    if (PyTuple_Check(key) == 0) {
        indices.push_back(index_of(key));
        return indices;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); ++i)
        indices.push_back(index_of(PyTuple_GetItem(key, i)));
    return indices;
}

namespace {

// A number beyond the first axis ends loops over x, so it has Python's own exception.
template <class X>
X item_at(const X& x, PyObject* key) {
    if (PyLong_CheckExact(key) != 0) {
        const long long i = PyLong_AsLongLong(key);
        if (i == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        if (x.ndim() == 0) raise(PyExc_IndexError, "a 0-d array has no axis to index");
        const std::int64_t n = x.shape()[0];
        if (i < -n || i >= n)
            raise(PyExc_IndexError, "index " + std::to_string(i) +
                                        " is out of bounds for an axis of length " +
                                        std::to_string(n));
    }
    return functions::get_item(x, indices_of(key));
}

}  // namespace

Variable subscript(const Variable& x, PyObject* key) { return item_at(x, key); }
Array subscript(const Array& x, PyObject* key) { return item_at(x, key); }

}  // namespace catena::python
