// Keys of x[key], and the only element of an array as a number.
#include "operators.hpp"

#include "numpy.hpp"

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
    const Py_ssize_t result = PyNumber_AsSsize_t(value.get(), nullptr);  // clips huge numbers
    if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    return result;
}

// An integer: also a 0-d array or a scalar of NumPy, but no bool.
bool is_integer(PyObject* key) {
    if (PyLong_CheckExact(key) != 0) return true;
    if (PyIndex_Check(key) == 0 || PyBool_Check(key) != 0) return false;
    const Owned ndim(PyObject_GetAttrString(key, "ndim"));
    if (!ndim) PyErr_Clear();
    return !ndim || (PyLong_AsLong(ndim.get()) == 0 && numpy_kind(key) != 'b');
}

Index index_of(PyObject* key) {
    if (key == Py_None) return newaxis;
    if (key == Py_Ellipsis) return ellipsis;
    if (PyObject_TypeCheck(key, &PySlice_Type) != 0)
        return slice(bound(key, "start"), bound(key, "stop"), bound(key, "step").value_or(1));
    if (is_variable(key)) return data_of(key);
    if (is_array(key)) return held<Array>(key);
    if (is_integer(key)) {
        const Py_ssize_t result = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (result == -1 && PyErr_Occurred() != nullptr) throw PythonError();
        return static_cast<std::int64_t>(result);
    }
    Owned array = numpy("asarray", key);
    const char kind = numpy_kind(array.get());
    const Owned size = checked(PyObject_GetAttrString(array.get(), "size"));
    const bool empty_list = PyList_Check(key) != 0 && PyLong_AsLong(size.get()) == 0;
    if ((kind == 'f' || kind == 0) && !empty_list)
        raise(python_class_of_index_errors(),
              "[get_item] index: expected integers, slices, None, ... or arrays of integers or "
              "bool, got " +
                  type_name(key));
    // NumPy accepts an empty 1-d mask for an axis of any length
    const Owned ndim = checked(PyObject_GetAttrString(array.get(), "ndim"));
    const bool selects_nothing = PyLong_AsLong(size.get()) == 0 && PyLong_AsLong(ndim.get()) == 1;
    if (kind != 'b' || selects_nothing)
        array = checked(PyObject_CallMethod(array.get(), "astype", "s", "int64"));
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

// Calls function(indices), with arrays on the device. Keys that do not fit raise IndexError, as in
// NumPy: one beyond the first axis ends loops over x.
template <class Call>
auto with_indices(PyObject* key, Device device, const Call& call) {
    std::vector<Index> indices = indices_of(key);
    for (Index& index : indices)
        if (index.kind() == Index::Kind::array) index = index.array().to(device);
    try {
        return call(std::span<const Index>(indices));
    } catch (const GraphError&) {
        throw;
    } catch (const Error& error) {
        const catena_status status = error.status();
        if (status != CATENA_E_INVALID && status != CATENA_E_VALUE && status != CATENA_E_SHAPE)
            throw;
        raise(python_class_of_index_errors(), error.what());
    }
}

}  // namespace

Variable subscript(const Variable& x, PyObject* key) {
    return with_indices(key, x.device(),
                        [&](auto indices) { return functions::get_item(x, indices); });
}
Array subscript(const Array& x, PyObject* key) {
    return with_indices(key, x.device(),
                        [&](auto indices) { return functions::get_item(x, indices); });
}
void assign(const Array& x, PyObject* key, PyObject* value) {
    Array source = is_number(value)
                       ? number_array(scalar_of(value), x.dtype(), x.device())
                       : array_of(value, "[set_item] value").to(x.device()).astype(x.dtype());
    if (source.size() == 1) source = source.reshape(Shape());
    x.copy_from(with_indices(
        key, x.device(), [&](auto indices) { return functions::set_item(x, indices, source); }));
}

}  // namespace catena::python
